"""`--structure auto`: what it predicts of a text is what decoding gives, it takes the best, and keeps times only."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fakes import VOCAB, random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.auto import choice as auto
from gumiho_decoder.measuring.auto import times as auto_times
from gumiho_decoder.measuring.auto.choice import LEAST_POSITIONS, candidates, choose, pilot
from gumiho_decoder.measuring.auto.times import KeptTimes, Times, measure_times
from gumiho_decoder.measuring.profile.parts import CycleParts
from gumiho_decoder.measuring.prompts import spread
from gumiho_theory import (
    AutoStructure,
    ChainStructure,
    CostProfile,
    DynamicTree,
    InputError,
    ScoreCalibration,
    StaticTree,
    TemperatureMap,
)
from scripted import ScriptedDrafter, mixed

TREE = DynamicTree(total=16, top_k=3, depth=6, mlp_topk=3)
STATIC = StaticTree(((1,), (2,), (1, 1), (1, 2), (1, 1, 1)))
STRUCTURES = [ChainStructure(1), ChainStructure(3), ChainStructure(8), STATIC, TREE]
PROFILE = CostProfile("t", "d", "cpu", "float32", 1.0, (1, 64), (1.0, 2.0), 0.1, 0.1, 2, 0.1)
AUTO = GenerationConfig(structure=AutoStructure())


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(auto, "busy", lambda: None)  # whatever else runs beside the tests
    return tmp_path / "gumiho"


@pytest.fixture
def timed(monkeypatch):
    """Replace the clock: every cycle takes as long as the fixture says, a plain step 1."""
    costs: dict = {}

    def interleaved(parts, repeats, progress=None):
        for part in parts.values():
            assert part() > 0
        return {name: 1.0 if name is None else costs.get(name, 2.0) for name in parts}

    monkeypatch.setattr(auto_times, "interleaved", interleaved)
    monkeypatch.setattr(auto_times, "measure", lambda *_, **__: PROFILE)
    return costs


class Told(ScriptedDrafter):
    """Takes in any text: what cycles are timed behind is not all the target's own."""

    def advance(self, tokens, features):
        self.tokens = torch.cat([self.tokens, tokens])


def scripted(target, prompt, tokens=60, serial_steps=None) -> tuple[list[int], ScriptedDrafter]:
    sequence = [*prompt, *plain(target, prompt, GenerationConfig(tokens + 12)).token_ids]
    return sequence, ScriptedDrafter(sequence, VOCAB, mixed, serial_steps)


@pytest.mark.parametrize("serial_steps", [None, 2])
@pytest.mark.parametrize("seed", range(2))
def test_a_pilots_cycles_are_the_cycles_of_decoding(seed, serial_steps, prompt):
    target = random_target(seed)
    sequence, drafter = scripted(target, prompt, serial_steps=serial_steps)
    output = sequence[len(prompt) :][:60]
    with torch.inference_mode():
        found = pilot(target, drafter, STRUCTURES, [(prompt, output, False)] * 2, DraftOptions())
    last = len(prompt) + 60 - 8  # 8: the deepest of all
    for structure in STRUCTURES:
        cycles = []
        generate(target, drafter, prompt, GenerationConfig(60, structure), cycles.append)
        counted = [cycle.accepted + 1 for cycle in cycles if cycle.position < last]
        assert found[structure].tolist() == [[sum(counted), len(counted)]] * 2, str(structure)


def test_a_text_that_ended_is_used_up_to_its_end_and_the_cycle_that_meets_it_does_not_count(prompt):
    target = random_target()
    sequence, _ = scripted(target, prompt)
    drafter = ScriptedDrafter(sequence, VOCAB, lambda place: 1)  # always right
    with torch.inference_mode():
        chains = [ChainStructure(3), ChainStructure(6)]
        found = pilot(target, drafter, chains, [(prompt, sequence[8:18], True)], DraftOptions())
    # Roots at 0 and 4 of 10 tokens; the one at 8 accepts the end. Of depth 6: 0; the one at 7 accepts it.
    assert [found[chain].tolist() for chain in chains] == [[[8, 2]], [[7, 1]]]


def test_texts_too_short_for_any_cycle_say_nothing(prompt):
    target = random_target()
    with torch.inference_mode():
        found = pilot(target, random_drafter(target), [ChainStructure(7)], [(prompt, [3, 4], False)], DraftOptions())
    assert found[ChainStructure(7)].tolist() == [[0, 0]]


def test_only_structures_that_the_drafter_makes_are_candidates():
    target = random_target()
    drafter = random_drafter(target, serial_steps=2, parallel_heads=1)
    found = candidates(drafter, DraftOptions())
    assert [s.length for s in found if isinstance(s, ChainStructure)] == [1, 2, 3]
    trees = [s for s in found if isinstance(s, DynamicTree)]
    assert [(s.total, s.top_k) for s in trees] == [(8, 2), (16, 2), (24, 4), (32, 5), (48, 8), (60, 10)]
    assert all(s.depth == 3 and s.mlp_topk == s.top_k for s in trees)
    drawn = candidates(drafter, DraftOptions(random=torch.Generator()))
    assert drawn == [ChainStructure(1), ChainStructure(2), ChainStructure(3)]
    endless = candidates(ScriptedDrafter([], VOCAB, mixed), DraftOptions())
    assert [s.length for s in endless if isinstance(s, ChainStructure)] == list(range(1, 11))
    assert {s.depth for s in endless if isinstance(s, DynamicTree)} == {7}


def test_the_most_tokens_a_second_win(timed, prompt, cache):
    target = random_target()
    drafter = Told(scripted(target, prompt)[0], VOCAB, mixed)
    first = choose(target, drafter, [prompt], AUTO)
    by_tau = {row.structure: row.tau for row in first.candidates}
    assert first.structure == max(by_tau, key=by_tau.get)  # all cycles take 2
    assert first.speedup == by_tau[first.structure] / 2
    timed.update({structure: tau for structure, tau in by_tau.items()} | {ChainStructure(4): 1.0})
    next(cache.iterdir()).unlink()
    second = choose(target, drafter, [prompt], AUTO)
    assert second.structure == ChainStructure(4)
    assert all(row.speedup == row.tau / row.cycle_seconds for row in second.candidates)


def test_where_nothing_beats_plain_decoding_the_best_is_chosen_and_says_so(timed, prompt):
    target = random_target()
    drafter = random_drafter(target)
    timed.update(dict.fromkeys(candidates(drafter, DraftOptions()), 50.0) | {ChainStructure(2): 20.0})
    choice = choose(target, drafter, [prompt], AUTO)
    assert choice.structure == ChainStructure(2)
    assert choice.speedup < 1
    assert choice.pilot_cycles > 30
    assert choice.note == "plain decoding is predicted to be faster"


def test_at_a_temperature_lengths_are_those_of_the_sampled_text(timed, prompt):
    target = random_target()
    config = replace(AUTO, temperature=1.0, seed=3)
    sequence = [*prompt, *plain(target, prompt, replace(config, max_new_tokens=48)).token_ids]
    choice = choose(target, Told(sequence, VOCAB, lambda place: 1), [prompt], config)
    assert {row.structure: row.tau for row in choice.candidates}[ChainStructure(5)] == 6.0


def test_times_are_remembered_and_nothing_is_timed_again(timed, prompt, cache, monkeypatch):
    target = random_target()
    drafter = random_drafter(target)
    made = choose(target, drafter, [prompt], AUTO)
    assert made.source == "measured" and len(list(cache.iterdir())) == 1
    for owner, name in ((auto, "busy"), (auto_times, "interleaved"), (auto_times, "measure")):
        # Beside other work cached times are as good as ever.
        monkeypatch.setattr(owner, name, lambda *_, **__: pytest.fail("timed"))
    assert choose(target, drafter, [prompt], replace(AUTO, max_new_tokens=5)) == replace(made, source="cached")


def test_what_the_disk_holds_is_the_same_whatever_the_prompts(timed, prompt, cache):
    target = random_target()
    drafter = random_drafter(target)
    kept = []
    for prompts in ([prompt], [[9, 9]] * 3):
        choice = choose(target, drafter, prompts, AUTO)
        (path,) = cache.iterdir()
        kept.append(json.loads(path.read_text()))
        path.unlink()
    assert kept[0] == kept[1]
    assert set(kept[0]) == {"schema", "key", "baseline_seconds", "cycles", "profile"}
    rows = tuple((row.structure, row.cycle_seconds) for row in choice.candidates)
    assert Times.from_json(kept[0]) == Times(1.0, rows, PROFILE)
    assert Times.from_json(kept[0]).to_json().items() <= kept[0].items()


def test_cached_times_meet_the_tau_of_the_prompts_at_hand(timed, prompt):
    """Times from a prompt whose drafts fail, then one whose drafts are right: the verdict is that of a fresh choice."""
    target = random_target()
    drafter = Told(scripted(target, prompt)[0], VOCAB, lambda place: 1)
    other = [9, 9, 4]
    poor = choose(target, drafter, [other], AUTO)
    good = choose(target, drafter, [prompt], AUTO)
    assert (poor.source, good.source) == ("measured", "cached")
    assert poor.speedup < 1 < good.speedup
    text = plain(target, prompt, GenerationConfig(48)).token_ids
    with torch.inference_mode():
        found = pilot(
            target, drafter, [row.structure for row in good.candidates], [(prompt, text, False)], DraftOptions()
        )
    assert {row.structure: row.tau for row in good.candidates} == {s: n[0, 0] / n[0, 1] for s, n in found.items()}
    assert good.pilot_cycles == found[good.structure][0, 1]


def test_times_taken_beside_other_work_are_used_but_not_kept(timed, prompt, cache, monkeypatch):
    target = random_target()
    drafter = random_drafter(target)
    calls = []
    monkeypatch.setattr(auto, "busy", lambda: calls.append(1) or "note: other work is running")
    busy = choose(target, drafter, [prompt], AUTO)
    assert busy.source == "measured" and len(calls) == 1
    assert busy.note.startswith("note: other work is running")
    assert not cache.exists()
    monkeypatch.setattr(auto, "busy", lambda: None)
    quiet = choose(target, drafter, [prompt], AUTO)
    assert quiet.source == "measured" and len(list(cache.iterdir())) == 1
    assert replace(quiet, note=None) == replace(busy, note=None)


def test_a_choice_says_all_that_speaks_against_relying_on_it(timed, prompt, monkeypatch):
    target = random_target()
    drafter = Told(scripted(target, prompt)[0], VOCAB, mixed)
    timed.update(dict.fromkeys(candidates(drafter, DraftOptions()), 50.0))
    monkeypatch.setattr(auto, "busy", lambda: "note: busy")
    choice = choose(target, drafter, [prompt], AUTO)
    assert 0 < choice.pilot_cycles < 30
    few = f"pilot of {choice.pilot_cycles} cycles only"
    assert choice.note == f"note: busy; {few}; plain decoding is predicted to be faster"
    timed.update(dict.fromkeys(timed, 0.5))
    monkeypatch.setattr(auto, "busy", lambda: None)
    choice = choose(target, drafter, [prompt] * 3, AUTO)
    assert choice.pilot_cycles >= 30
    assert choice.note is None


@pytest.mark.parametrize("length", [2, 5, 40])
def test_n_grams_find_something_in_the_text_that_cycles_are_timed_behind(length, timed, monkeypatch):
    """Of a text without any repetition too: else drafts would be the root alone, a cycle as cheap as a plain step."""
    target = random_target()
    drafter = NgramDrafter(target)
    texts = []
    monkeypatch.setattr(auto_times, "CycleParts", lambda *given: texts.append(given[2]) or CycleParts(*given))
    with torch.inference_mode():
        measure_times(target, drafter, [ChainStructure(3)], list(range(3, 3 + length)), AUTO)
    (text,) = texts
    drafter.start(torch.tensor(text), torch.empty(len(text) - 1, 0))
    assert drafter.propose(ChainStructure(3)).n_nodes > 1


@pytest.mark.parametrize(
    "change",
    [
        lambda target, drafter: replace(AUTO, temperature=0.7),
        lambda target, drafter: replace(AUTO, temperature=0.7, top_k=5),
        lambda target, drafter: replace(AUTO, temperature=0.7, top_p=0.9),
        lambda target, drafter: replace(AUTO, calibration=ScoreCalibration("d", "0" * 64, (TemperatureMap(2.0),), {})),
        lambda target, drafter: replace(AUTO, budget=PROFILE),
        lambda target, drafter: setattr(drafter, "fingerprint", "1" * 64),
        lambda target, drafter: setattr(drafter, "name", "another"),
        lambda target, drafter: setattr(target, "name", "another"),
        lambda target, drafter: setattr(target.config, "num_hidden_layers", 2),
        lambda target, drafter: target.model.double(),
    ],
)
def test_whatever_times_depend_on_makes_them_others(change):
    target = random_target()
    drafter = random_drafter(target)
    before = KeptTimes.of(target, drafter, AUTO).key
    assert KeptTimes.of(target, drafter, AUTO).key == before
    changed = change(target, drafter)
    config = changed if isinstance(changed, GenerationConfig) else AUTO
    assert KeptTimes.of(target, drafter, config).key != before


def _with(name: str, value):
    return lambda data: json.dumps(data | {name: value})


def _cycle(name: str, value):
    return lambda data: json.dumps(data | {"cycles": [data["cycles"][0] | {name: value}, *data["cycles"][1:]]})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: "",
        lambda data: "[1, 2]",
        lambda data: "{}",
        lambda data: json.dumps(data | {"schema": "gumiho.auto/1"}),
        lambda data: json.dumps(data | {"key": "0" * 64}),
        lambda data: json.dumps({k: v for k, v in data.items() if k != "profile"}),
        lambda data: json.dumps({k: v for k, v in data.items() if k != "baseline_seconds"}),
        *(_with("baseline_seconds", value) for value in ("fast", -1.0, 0, True, None, float("nan"), 10**400)),
        *(_with("cycles", value) for value in (None, 7, [], [3], {})),
        lambda data: json.dumps(data | {"cycles": data["cycles"][1:]}),
        lambda data: json.dumps(data | {"cycles": data["cycles"][::-1]}),
        lambda data: json.dumps(data | {"cycles": data["cycles"] * 2}),
        *(
            _cycle("structure", value)
            for value in (7, {"kind": "chain", "length": 400}, {"kind": "chain", "length": 64})
        ),
        *(_cycle("seconds", value) for value in (None, "1", 0.0, float("inf"), 10**400)),
        *(_with("profile", value) for value in ([], {}, PROFILE.to_json() | {"baseline_seconds": 0})),
        lambda data: json.dumps(data) + " " * (1 << 20),
    ],
)
def test_a_memory_that_is_unreadable_or_not_its_own_is_none(spoil, cache):
    times = Times(1.0, ((ChainStructure(1), 1.5), (ChainStructure(2), 2.5), (TREE, 3)), PROFILE)
    structures = [structure for structure, _ in times.cycles]
    path = cache / "auto.json"
    kept = KeptTimes("0" * 63 + "1", path)
    kept.write(times)
    assert kept.read(structures) == times
    path.write_text(spoil(json.loads(path.read_text())))
    assert kept.read(structures) is None


def test_what_is_no_memory_is_measured_anew_and_replaced(timed, prompt, cache):
    target = random_target()
    drafter = random_drafter(target)
    made = choose(target, drafter, [prompt], AUTO)
    (path,) = cache.iterdir()
    path.write_text("{}")
    assert choose(target, drafter, [prompt], AUTO) == made
    assert choose(target, drafter, [prompt], AUTO).source == "cached"


def test_a_home_that_cannot_be_written_or_is_not_there_costs_only_time(timed, prompt, cache, monkeypatch):
    target = random_target()
    drafter = random_drafter(target)
    cache.write_text("a file where the folder would be")
    assert choose(target, drafter, [prompt], AUTO) == choose(target, drafter, [prompt], AUTO)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the standard says to ignore
    home = cache.parent / "home"
    monkeypatch.setattr(Path, "home", lambda: home)
    choose(target, drafter, [prompt], AUTO)
    assert len(list((home / ".cache" / "gumiho").iterdir())) == 1

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert choose(target, drafter, [prompt], AUTO).source == "measured"


def test_a_pilot_of_no_cycle_says_so_and_leaves_its_times(timed, cache):
    target = random_target()
    first = plain(target, [5, 6], GenerationConfig(1)).token_ids[0]
    choice = choose(target, random_drafter(target), [[5, 6]] * 2, replace(AUTO, stop_token_ids=(first,)))
    assert choice.pilot_cycles == 0
    assert choice.interval is None
    assert {row.tau for row in choice.candidates} == {1.0}
    assert choice.note.startswith("pilot of 0 cycles only")
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("length", [1, 253, 255])
def test_prompts_of_any_length_that_fits_will_do(length, timed):
    target = random_target()
    prompt = [3 + i % 7 for i in range(length)]
    assert choose(target, random_drafter(target), [prompt], AUTO).speedup > 0


def test_at_most_eight_prompts_are_decoded_spread_over_all_of_them(timed, monkeypatch):
    target = random_target()
    seen = []
    decode = auto.plain
    monkeypatch.setattr(auto, "plain", lambda t, p, c: seen.append((p, c.max_new_tokens)) or decode(t, p, c))
    prompts = [[3 + i % 7, i] for i in range(20)]
    for _ in range(2):  # measured, cached
        seen.clear()
        choose(target, random_drafter(target), prompts, AUTO)
        assert seen == [(prompts[i], 48) for i in (0, 2, 5, 7, 10, 12, 15, 17)]
    assert spread(prompts[:3], auto.PILOT_PROMPTS) == prompts[:3]


def test_a_prediction_has_an_interval_over_the_texts_of_the_pilot(timed, prompt):
    target = random_target()
    drafter = Told(scripted(target, prompt)[0], VOCAB, lambda place: 1)
    easy, hard = prompt, [9, 9, 4]  # drafts are right behind the one, fail behind the other
    assert choose(target, drafter, [easy], AUTO).interval is None
    same, mixed_ = choose(target, drafter, [easy] * 2, AUTO), choose(target, drafter, [easy, hard], AUTO)
    assert same.interval == (same.speedup, same.speedup)
    low, high = mixed_.interval
    assert low < mixed_.speedup < high


@pytest.mark.parametrize(
    ("prompts", "settings", "message"),
    [
        ([], {}, "prompts: found none"),
        ([[]], {}, "prompt: found 0 tokens"),
        ([[1] * 256], {}, "prompt: found 256 tokens"),
        ([[1], [2], [1] * 256], {}, "prompt: found 256 tokens"),
        ([[1]], {"temperature": 1.0, "candidates": "sampled"}, "structure auto: found sampled candidates"),
        ([[1]], {"temperature": 1.0, "acceptance": "typical"}, "structure auto: found typical (lossy)"),
    ],
)
def test_what_cannot_be_chosen_for_is_named_before_anything_is_timed(prompts, settings, message, monkeypatch):
    monkeypatch.setattr(auto_times, "interleaved", lambda *_: pytest.fail("timed"))
    target = random_target()
    with pytest.raises(InputError) as caught:
        choose(target, random_drafter(target), prompts, replace(AUTO, **settings))
    assert message in str(caught.value)


def test_models_of_hardly_any_positions_are_refused(timed):
    target = random_target(positions=LEAST_POSITIONS - 1)
    with pytest.raises(InputError, match=f"at least {LEAST_POSITIONS}"):
        choose(target, random_drafter(target), [[1]], AUTO)


@pytest.mark.parametrize("positions", [LEAST_POSITIONS, 256])
def test_decoding_with_a_structure_that_was_really_measured_gives_the_plain_text(positions, prompt):
    target = random_target(positions=positions)
    drafter = random_drafter(target)
    config = replace(AUTO, max_new_tokens=24)
    with pytest.raises(InputError, match=r"structure: found auto, wanted a structure: gumiho_decoder\.choose"):
        generate(target, drafter, prompt, config)
    chosen = replace(config, structure=choose(target, drafter, [prompt], config).structure)
    assert generate(target, drafter, prompt, chosen).token_ids == plain(target, prompt, config).token_ids
    choice = choose(target, drafter, [prompt], config)
    assert choice.source == "cached"
    assert choice.profile.verify_nodes[-1] == (16 if positions == LEAST_POSITIONS else 64)
