"""Cost profiles: what is timed, how it becomes a profile, and that nothing stays behind in the models."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fakes import random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.profile import parts as measuring
from gumiho_decoder.measuring.profile import shapes
from gumiho_decoder.measuring.profile.draft_costs import DraftCosts, fit_draft, head_seconds
from gumiho_decoder.measuring.profile.pairs import measure, measure_together, one_layer_more, profile_pair
from gumiho_decoder.measuring.profile.parts import CycleParts, interleaved
from gumiho_theory import ChainStructure, CostProfile, InputError, StaticTree, Structure

TREE = "tree:total=20,top_k=4,depth=7,mlp_topk=6"


def profile_of(costs: DraftCosts) -> CostProfile:
    return CostProfile(
        "t",
        "d",
        "cpu",
        "float32",
        1.0,
        (1,),
        (1.0,),
        costs.serial,
        costs.parallel,
        costs.serial_steps,
        0.0,
        costs.fixed,
    )


def drafts(profile: CostProfile, depths: int) -> list[float]:
    return [profile.draft_seconds(depth) for depth in range(1, depths + 1)]


seconds = st.floats(1e-5, 1.0)


@given(fixed=seconds, serial=seconds, parallel=seconds, steps=st.integers(2, 4), depth=st.integers(5, 9))
def test_a_fit_returns_the_costs_that_times_were_made_of(fixed, serial, parallel, steps, depth):
    costs = DraftCosts(fixed, serial, parallel, steps)
    assert fit_draft(drafts(profile_of(costs), depth), steps) == pytest.approx(costs, rel=1e-7, abs=1e-9)


@given(fixed=seconds, serial=seconds, parallel=seconds, depth=st.integers(2, 9))
def test_a_single_serial_step_keeps_what_any_draft_costs(fixed, serial, parallel, depth):
    made = drafts(profile_of(DraftCosts(fixed, serial, parallel, 1)), depth)
    assert fit_draft(made, 1) == pytest.approx((0.0, fixed + serial, parallel, 1), rel=1e-7, abs=1e-9)


@given(surplus=st.floats(0.0, 1.0), serial=seconds, depth=st.integers(2, 9), steps=st.sampled_from([None, 9]))
def test_without_parallel_heads_every_depth_is_a_serial_step(surplus, serial, depth, steps):
    fixed = surplus * serial  # the first step takes in two tokens, the others one
    found = fit_draft([fixed + serial * d for d in range(1, depth + 1)], steps)
    assert found == pytest.approx((fixed, serial, 0.0, depth), rel=1e-7, abs=1e-9)
    assert drafts(profile_of(found), 12) == pytest.approx([fixed + serial * d for d in range(1, 13)])


@given(cost=seconds, noise=st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=9))
def test_a_drafter_whose_steps_cost_nothing_has_one_cost_at_any_depth(cost, noise):
    made = [cost * (1 + x) for x in noise]
    profile = profile_of(fit_draft(made, None))
    assert drafts(profile, 12) == pytest.approx([sum(made) / len(made)] * 12)
    assert profile.draft_seconds(0) == 0.0


@given(measured=st.lists(seconds, min_size=3, max_size=9), steps=st.integers(1, 2))
def test_parallel_heads_never_cost_nothing_or_less_which_would_make_each_depth_a_serial_step(measured, steps):
    costs = fit_draft(measured, steps)
    assert costs.parallel > 0 and costs.serial_steps == steps
    later = drafts(profile_of(costs), 9)[steps:]
    assert max(later) == min(later)


@given(measured=st.lists(seconds, min_size=2, max_size=9), steps=st.integers(1, 3))
def test_no_other_costs_reproduce_the_times_better(measured, steps):
    def error(costs: DraftCosts) -> float:
        made = drafts(profile_of(costs), len(measured))
        return sum((a - b) ** 2 for a, b in zip(made, measured, strict=True))

    found = fit_draft(measured, steps)
    best = error(found)
    for name in ("fixed", "serial", "parallel"):
        for step in (-1e-6, 1e-6):
            other = found._replace(**{name: getattr(found, name) + step})
            # Parallel heads cost something or are not there; a negative cost is none.
            if min(other[:3]) >= 0 and (other.parallel > 1e-9) == (found.parallel > 0):
                assert error(other) >= best * (1 - 1e-9) - 1e-15


def test_every_round_runs_all_parts_and_the_first_two_do_not_count():
    calls = []

    def part(name, values):
        rest = iter(values)

        def run() -> float:
            calls.append(name)
            return next(rest)

        return run

    rounds = []
    parts = {"a": part("a", [100, 100, 1, 2, 9]), "b": part("b", [100, 100, 4, 4, 3])}
    found = interleaved(parts, 3, lambda: rounds.append(len(calls)))
    assert found == {"a": 1.5, "b": 3.5}  # lower quartiles
    assert rounds == [2, 4, 6, 8, 10]
    assert all(Counter(calls[at : at + 2]) == {"a": 1, "b": 1} for at in range(0, 10, 2))


class Ticking:
    """A clock that only the target and the drafter move, by what each of their parts is said to cost."""

    def __init__(self, monkeypatch, target, drafter, *, serial: int) -> None:
        self.now = 0.0
        monkeypatch.setattr(measuring, "time", SimpleNamespace(perf_counter=lambda: self.now))
        self._wrap(monkeypatch, target, "prefill", lambda tokens: 1000.0)
        self._wrap(monkeypatch, target, "step", lambda token: 7.0)
        self._wrap(monkeypatch, target, "verify", lambda tokens, *_: 10.0 + len(tokens))
        self._wrap(monkeypatch, target, "keep", lambda nodes, path, at: 0.5 if path else 1000.0)
        self._wrap(monkeypatch, drafter, "start", lambda tokens, features: 1000.0)
        self._wrap(monkeypatch, drafter, "advance", lambda tokens, features: 0.25 * len(tokens))
        steps = lambda depth: 2.0 * min(depth, serial) + 0.5 + (5.0 if depth > serial else 0.0)  # noqa: E731
        self._wrap(monkeypatch, drafter, "propose", lambda structure, options: steps(structure.depth))

    def _wrap(self, monkeypatch, owner, name, cost) -> None:
        method = getattr(owner, name)

        def run(*arguments):
            self.now += cost(*arguments)
            before = self.now
            result = method(*arguments)
            self.now = before  # what it calls of the others' is its own cost
            return result

        monkeypatch.setattr(owner, name, run)


@pytest.mark.parametrize("structure", [None, "chain:4", TREE])
def test_each_time_covers_its_part_of_a_cycle_and_nothing_else(structure, monkeypatch):
    target = random_target()
    drafter = random_drafter(target)
    Ticking(monkeypatch, target, drafter, serial=2)
    asked = None if structure is None else Structure.parse(structure)
    profile = measure(target, drafter, context=40, nodes=(1, 5, 30), repeats=2, structure=asked)
    assert profile.baseline_seconds == 7.0
    assert profile.verify_seconds == (11.0, 15.0, 40.0)
    draft = profile.draft_fixed_seconds, profile.draft_serial_seconds, profile.draft_parallel_seconds
    assert draft == pytest.approx((1.0, 2.0, 5.0))  # taking in two tokens is 0.5, and 0.5 comes on top of the steps
    assert profile.serial_steps == 2
    assert profile.other_seconds == 0.5
    assert (profile.target, profile.drafter, profile.dtype) == ("random", "random", "float32")
    assert profile.device.endswith(f"{torch.get_num_threads()} threads")


def test_drafters_measured_together_share_the_target_s_times_and_have_drafts_of_their_own(monkeypatch):
    target = random_target()
    first, second = random_drafter(target), random_drafter(target, parallel_heads=3)
    Ticking(monkeypatch, target, first, serial=2)
    alone = measure(target, first, context=40, nodes=(1, 5), repeats=2)
    one, other = measure_together(target, [first, second], context=40, nodes=(1, 5), repeats=2)
    assert one == alone
    assert (other.baseline_seconds, other.verify_seconds) == (one.baseline_seconds, one.verify_seconds)
    assert (other.serial_steps, other.parallel_heads) == (2, 3)
    # Its clock stands still but where the first one's parts or the target's run.
    assert other.draft_serial_seconds == 0.0 and other.other_seconds == one.other_seconds


def behind(target) -> torch.Tensor:
    logits = target.step(3)
    target.keep(1, [], torch.empty(0, dtype=torch.int64))
    return logits


@torch.inference_mode()
@pytest.mark.parametrize("structure", ["chain:3", TREE, "static:[[1],[2],[1,1]]"])
def test_a_cycle_is_its_parts_and_leaves_the_caches_as_they_were(structure, monkeypatch):
    target = random_target()
    drafter = random_drafter(target)
    Ticking(monkeypatch, target, drafter, serial=2)
    structure = Structure.parse(structure)
    cycle = CycleParts(target, drafter, list(range(1, 31)), GenerationConfig())
    logits = behind(target)
    parts = cycle.draft(structure) + cycle.rest(structure)
    whole = cycle.whole(structure)
    assert whole > parts
    assert 10 < whole - parts <= 10 + 20  # the verification of that many nodes
    cycle.verify(50)
    cycle.step()
    assert target.length == 29
    torch.testing.assert_close(behind(target), logits, atol=1e-5, rtol=1e-5)
    assert drafter._cache._cache.get_seq_length() == drafter._cache.verified


@pytest.mark.parametrize("method", [*shapes.METHODS, "ngram", "draft-model"])
def test_every_method_is_measured_and_decodes_exactly_afterwards(method):
    target = shapes.random_target("tiny-shape")
    if method == "ngram":
        drafter = NgramDrafter(target)
    elif method == "draft-model":
        drafter = DraftModelDrafter(target, target, "itself")
    else:
        drafter = shapes.random_drafter(method, target)
    profile = measure(target, drafter, context=64, nodes=(1, 8), repeats=1)
    assert profile.serial_steps == {"gumiho": 2, "medusa": 1}.get(method, profile.serial_steps)
    assert profile.draft_parallel_seconds > 0 or method not in {"gumiho", "medusa"}
    assert all(0 < seconds < 60 for seconds in drafts(profile, drafter.depth or 7))
    assert CostProfile.from_json(profile.to_json()) == profile
    prompt = [5, 9, 200, 31]
    config = GenerationConfig(20, ChainStructure(3))
    assert generate(target, drafter, prompt, config).token_ids == plain(target, prompt, config).token_ids


def test_ngrams_find_something_in_the_text_that_is_measured(monkeypatch):
    target = random_target()
    drafter = NgramDrafter(target)
    sizes = []
    propose = drafter.propose
    monkeypatch.setattr(drafter, "propose", lambda *a: sizes.append((d := propose(*a)).n_nodes) or d)
    measure(target, drafter, context=64, nodes=(1,), repeats=1)
    assert max(sizes) == 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"context": 200}, "context: found 200 tokens, wanted 3 to 128 (256 positions, 128 nodes behind it)"),
        ({"context": 2}, "context: found 2 tokens"),
        ({"nodes": (1, 300)}, "300 nodes behind it"),
        ({"nodes": ()}, "nodes: found []"),
        ({"nodes": (0, 4)}, "nodes: found [0, 4]"),
        ({"nodes": (4, 4)}, "nodes: found [4, 4]"),
        ({"repeats": 0}, "repeats: found 0"),
        ({"structure": "auto"}, "structure"),
        ({"structure": "chain:8"}, "at most 7"),
        ({"structure": "chain:2"}, "deeper than the 2 serial steps"),
    ],
)
def test_what_cannot_be_measured_is_named(settings, message):
    target = random_target()
    if "structure" in settings:
        settings = settings | {"structure": Structure.parse(settings["structure"])}
    with pytest.raises(InputError, match=r"[\s\S]*") as caught:
        measure(target, random_drafter(target), **settings)
    assert message in str(caught.value)


def test_serial_steps_alone_are_all_there_is_to_time_where_there_are_no_heads():
    target = random_target()
    drafter = random_drafter(target, parallel_heads=0)
    profile = measure(target, drafter, context=20, nodes=(1,), repeats=1)
    assert (profile.serial_steps, profile.draft_parallel_seconds) == (2, 0.0)


def test_a_profile_says_what_its_draft_times_hold_for_and_what_a_layer_and_a_head_take():
    target = random_target()
    gumiho = measure(target, random_drafter(target), context=20, nodes=(1,), repeats=1)
    assert (gumiho.serial_layers, gumiho.parallel_heads) == (2, 5)
    assert gumiho.layer_seconds >= 0 and gumiho.head_seconds >= 0
    serial = measure(target, random_drafter(target, parallel_heads=0), context=20, nodes=(1,), repeats=1)
    assert (serial.parallel_heads, serial.head_seconds) == (None, None)
    other = measure(target, NgramDrafter(target), context=20, nodes=(1,), repeats=1)
    assert (other.serial_layers, other.layer_seconds, other.parallel_heads) == (None, None, None)


def test_one_layer_more_is_another_model_with_the_layer_in_its_own_place():
    target = random_target()
    drafter = random_drafter(target)
    deeper = one_layer_more(drafter)
    layers = deeper.model.serial.layers
    assert [layer.self_attn.layer_idx for layer in layers] == [0, 1, 2]
    assert len(drafter.model.serial.layers) == 2
    tokens = list(range(3, 9))
    config = GenerationConfig(structure=ChainStructure(3))
    assert CycleParts(target, deeper, tokens, config).draft(ChainStructure(3)) > 0
    kept = [cached.keys.shape[-2] for cached in deeper._cache._cache.layers]
    assert len(kept) == 3 and len(set(kept)) == 1  # the layer added has keys of its own


@given(first=seconds, head=st.floats(0, 1e-2), heads=st.integers(2, 7))
def test_a_heads_time_is_what_each_one_adds(first, head, heads):
    assert head_seconds([first + head * n for n in range(heads)]) == pytest.approx(head, abs=1e-9)
    assert head_seconds([first - head * n for n in range(heads)]) <= 1e-9


def test_a_static_tree_is_timed_at_each_of_its_depths(monkeypatch):
    target = random_target()
    drafter = random_drafter(target)
    asked = []
    propose = drafter.propose
    monkeypatch.setattr(drafter, "propose", lambda s, o: asked.append(s) or propose(s, o))
    tree = StaticTree(((1,), (2,), (1, 1), (1, 1, 1)))
    measure(target, drafter, context=20, nodes=(1,), repeats=1, structure=tree)
    assert set(asked) == {tree.cut(1), tree.cut(2), tree}


def test_the_command_measures_random_models_and_writes_the_profile(tmp_path):
    path = tmp_path / "profile.json"
    profile = profile_pair("random:tiny-shape", "random:eagle", context=64, structure="chain:3", output=path)
    assert CostProfile.read(path) == profile
    assert (profile.target, profile.drafter, profile.serial_steps) == ("random:tiny-shape", "random:eagle", 3)


def test_the_command_looks_at_the_request_before_it_loads_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(shapes, "load", lambda *_: pytest.fail("loaded"))
    with pytest.raises(InputError, match="missing"):
        profile_pair("tiny", "tiny:gumiho", output=tmp_path / "missing" / "profile.json")
    with pytest.raises(InputError, match="structure"):
        profile_pair("tiny", "tiny:gumiho", structure="forest")
