"""The every-position log beside the runs that it must foretell, and beside drafting from one place after another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.eagle.drafter import EagleDrafter, EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.logging import places
from gumiho_decoder.logging.every_position import Log
from gumiho_decoder.logging.places import most_places
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate
from gumiho_theory import ChainStructure, CostProfile, DynamicTree, ScoreCalibration, TemperatureMap
from logged import PROMPT, STATIC, STRUCTURES, chain_cycles, logged, perturbed, scripted, structures, text


def cycles_of(trace):
    """(accepted length, whether it is a lower bound) of each cycle that happened."""
    bound = (trace.censored_at != -1) & (trace.censored_at == trace.accepted)
    return list(zip(trace.accepted.tolist(), bound.astype(int).tolist(), strict=True))


def foretold(log, structure, out):
    accepted, censored = log.accepted_by(structure).tolist(), log.censored_by(structure).tolist()
    starts, start = [], 0
    for length in chain_cycles(accepted, len(out.token_ids)):
        starts.append(start)
        start += length + 1
    return [(accepted[i], censored[i]) for i in starts]


def check_run(target, drafter, config, structures=STRUCTURES):
    """One greedy run's log foretells, cycle by cycle, the run of every structure."""
    _, out, log = logged(target, drafter, config, structures)
    for structure in structures:
        recorder = Recorder()
        again = generate(target, drafter, PROMPT, replace(config, structure=structure), recorder.prompt("a", None, 0))
        assert again.token_ids == out.token_ids
        assert foretold(log, structure, out) == cycles_of(recorder.trace({})), structure
    return out, log


@pytest.mark.parametrize("serial_steps", [None, 1, 2])
@pytest.mark.parametrize("limit", [2, 30])
def test_the_lengths_chained_are_those_of_real_runs_that_end_by_length(limit, serial_steps):
    drafter = scripted(serial_steps=serial_steps)
    out, log = check_run(random_target(), drafter, GenerationConfig(limit, ChainStructure(2)))
    assert out.stop_reason == "length"
    assert log.position.tolist() == list(range(len(PROMPT), len(PROMPT) + limit))
    assert (log.censored == 0).all()  # plain steps behind the end decide all lengths
    if limit == 30:
        assert len(set(log.accepted_by("chain:6").tolist())) > 3


@pytest.mark.parametrize("at", [1, 3, 5, 8, 20])
def test_the_lengths_chained_are_those_of_real_runs_that_end_by_eos(at):
    eos = text(3, 80)[at]
    target = random_target(3, eos=eos)
    out, log = check_run(target, scripted(3), GenerationConfig(40, ChainStructure(2)))
    assert out.stop_reason == "eos"
    # Every token starts a cycle but the EOS; nothing is known behind it.
    assert log.position.tolist() == list(range(len(PROMPT), len(PROMPT) + len(out.token_ids) - 1))
    known = len(PROMPT) + len(out.token_ids) - 1 - log.position[:, None]
    assert ((log.true_token == -1) == (np.arange(1, log.depth + 1) > known)).all()
    assert (log.accepted <= known).all()


@pytest.mark.parametrize("behind", [1, 2, 5])
def test_a_stop_id_behind_the_end_of_an_output_censors_what_would_have_run_into_it(behind):
    tokens = text(0, 80)
    limit = next(n for n in range(10, 40) if tokens[n + behind - 1] not in tokens[: n + behind - 1])
    stop = tokens[limit + behind - 1]
    config = GenerationConfig(limit, ChainStructure(2), stop_token_ids=(stop,))
    out, log = check_run(random_target(), scripted(rank=lambda place: 1), config)
    assert out.stop_reason == "length"
    assert log.accepted_by("chain:6").tolist()[-1] == behind
    assert log.censored_by("chain:6").tolist()[-1] == 1
    assert (log.true_token[-1, behind:] == -1).all()


@pytest.mark.parametrize("positions", [10, 12, 15, 30])
@pytest.mark.parametrize("serial_steps", [None, 2])
def test_the_lengths_chained_are_those_of_real_runs_that_end_with_the_context(positions, serial_steps):
    drafter = scripted(1, serial_steps=serial_steps)
    out, log = check_run(random_target(1, positions=positions), drafter, GenerationConfig(60, ChainStructure(2)))
    assert out.stop_reason == "context"
    room = positions - 1 - log.position
    assert log.drafted.tolist() == np.minimum(room, 6).tolist()
    assert (log.accepted <= room[:, None]).all()
    assert (
        log.censored_by("chain:6").tolist() == ((log.accepted_by("chain:6") == room) & (room < 6)).astype(int).tolist()
    )


def test_a_stop_string_ends_the_output_not_the_text():
    string = random_target().decode(text(0, 80)[11:13])
    config = GenerationConfig(40, ChainStructure(3), stop_strings=(string,))
    out, log = check_run(random_target(), scripted(), config)
    assert out.stop_reason == "stop_string"
    assert (log.censored == 0).all()
    assert (log.true_token >= 0).all()


@given(
    st.lists(st.integers(0, 4), min_size=12, max_size=12),
    structures(),
    st.none() | st.integers(1, 3),
    st.integers(1, 14),
    st.none() | st.integers(1, 14),
)
@settings(max_examples=40, deadline=None)
def test_whatever_is_drafted_and_wherever_it_ends_the_log_foretells_the_run(ranks, structure, serial, limit, at):
    eos = None if at is None else text(0, 80)[at]
    target = random_target(0, eos=eos)
    drafter = scripted(rank=lambda place: ranks[place % 12], serial_steps=serial)
    trace, out, log = logged(target, drafter, GenerationConfig(limit, structure), [structure])
    if len(out.token_ids) == 1:
        assert log.n_rows == trace.n_cycles == 0
    else:
        assert foretold(log, structure, out) == cycles_of(trace)


@pytest.mark.parametrize("seed", range(2))
def test_a_sampled_text_replayed_gives_the_sampled_runs_own_lengths(seed):
    """Top candidates are no draws: given the text, what was accepted follows."""
    target = random_target()
    drafter = perturbed(target)
    for structure in STRUCTURES:
        config = GenerationConfig(40, structure, temperature=1.5, top_p=0.95, seed=seed)
        trace, out, log = logged(target, drafter, config, [structure, ChainStructure(3)])
        assert foretold(log, structure, out) == cycles_of(trace)
        assert trace.accepted.max() > 0
        assert (trace.accepted == 0).any()


def test_the_sampled_text_behind_the_end_is_made_with_draws_of_its_own():
    target = random_target()
    drafter = perturbed(target)
    config = GenerationConfig(12, ChainStructure(1), temperature=8.0, seed=3)
    log = Log(drafter, config, [ChainStructure(6)], 0)
    for name in "ab":
        collector = log.collector()
        out = generate(target, drafter, PROMPT, config, collector)
        log.add(target, drafter, PROMPT, out, collector, name, None, 0)
    made = log.made({})
    behind = made.true_token[[11, 23]]
    assert np.array_equal(made.true_token[:5], made.true_token[12:17])  # one seed, one text
    assert not np.array_equal(*behind)
    assert not np.array_equal(behind[0], made.true_token[0])


def one_by_one(drafter, tokens, features, place, structure):
    """The slow twin: the drafter started anew on the text up to `place`; (accepted length, draft)."""
    drafter.start(tokens[: place + 1], features[:place])
    draft = drafter.propose(structure)
    children = list(zip(draft.parents.tolist(), draft.tokens.tolist(), strict=True))
    node, behind = 0, iter(tokens[place + 1 :].tolist())
    while (right := (node, next(behind, None))) in children:
        node = children.index(right)
    return int(draft.depths[node]), draft


def scores_of(tokens, parents, row, log_q):
    """Each node's path of tokens and its log-probability."""
    paths = {0: ((), 0.0)}
    for node in range(1, len(tokens)):
        path, score = paths[int(parents[node])]
        token = int(tokens[node])
        paths[node] = ((*path, token), score + float(log_q[row[parents[node]], token]))
    return {path: score for path, score in paths.values() if score > -torch.inf}  # the others are no candidates


def random_eagle(target):
    torch.manual_seed(0)
    model = EagleModel(SerialConfig.for_target(target))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.15)
    return EagleDrafter(model, target, "random")


DRAFTERS = {
    "gumiho": random_drafter,
    "gumiho, one serial step": lambda target: random_drafter(target, serial_steps=1, parallel_heads=5),
    "eagle": random_eagle,
    "draft model": perturbed,
    "ngram": NgramDrafter,
}
WIDE = [ChainStructure(6), STATIC, DynamicTree(total=300, top_k=20, depth=4, mlp_topk=60)]


@pytest.mark.parametrize("name", DRAFTERS)
@torch.inference_mode()
def test_drafting_from_all_places_at_once_is_drafting_from_each_alone(name, monkeypatch):
    """Also a few places at a time. Trees may differ where two scores on either side of a cut are all but equal."""
    target = random_target(1, spread=0.1)
    drafter = DRAFTERS[name](target)
    _, out, log = logged(target, drafter, GenerationConfig(36, ChainStructure(3)), WIDE)
    monkeypatch.setattr(places, "_ROWS", 60)
    assert np.array_equal(
        logged(target, drafter, GenerationConfig(36, ChainStructure(3)), WIDE)[2].accepted, log.accepted
    )
    tokens = torch.tensor([*PROMPT, *out.token_ids])
    features = target.prefill(tokens.tolist()).features
    ties = 0
    for structure in WIDE:
        lengths = log.accepted_by(structure).tolist()
        for place in range(len(PROMPT), len(tokens) - structure.depth):
            accepted, draft = one_by_one(drafter, tokens, features, place, structure)
            if accepted != lengths[place - len(PROMPT)]:
                ties += 1
                drafter.start(tokens, features[:-1])
                roots = torch.arange(len(PROMPT), len(tokens))
                grown = drafter.grow(structure, DraftOptions(), drafter.branches(structure.depth, roots), tokens[roots])
                drafter.release()
                at = place - len(PROMPT)
                batched = scores_of(grown.tokens[at], grown.parents[at], grown.row[at], grown.log_q[at])
                alone = scores_of(draft.tokens, draft.parents, draft.row, draft.log_q)
                apart = [(batched | alone)[path] for path in batched.keys() ^ alone.keys()]
                assert apart and max(apart) - min(apart) < 1e-4
    assert ties <= 1  # none on the machine where this was written


@pytest.mark.parametrize("name", DRAFTERS)
def test_every_kind_of_drafter_is_foretold(name):
    target = random_target(1, spread=0.1)
    _, log = check_run(target, DRAFTERS[name](target), GenerationConfig(40, ChainStructure(2)), WIDE)
    assert len(np.unique(log.accepted)) > 2


@pytest.mark.parametrize("positions", [10, 14, 20])
def test_a_draft_model_that_a_text_outgrows_is_foretold(positions):
    target = random_target(2)
    _, log = check_run(target, perturbed(target, positions), GenerationConfig(20, ChainStructure(2)))
    assert log.drafted.tolist() == np.clip(positions - 1 - log.position, 0, 6).tolist()
    beyond = log.position >= positions - 1
    assert (log.accepted[beyond] == 0).all() and (log.censored[beyond] == 1).all()


@pytest.mark.parametrize("option", ["calibration", "budget"])
def test_drafts_are_chosen_as_in_the_run(option):
    profile = CostProfile("t", "d", "cpu", "float32", 1.0, (1, 2, 20), (1.0, 1.1, 6.0), 0.05, 0.0, 6, 0.0)
    target = random_target()
    maps = (TemperatureMap(0.3), TemperatureMap(3.0))
    calibration = ScoreCalibration("perturbed", perturbed(target).fingerprint, maps)
    option = {"calibration": {"calibration": calibration}, "budget": {"budget": profile}}[option]
    trees = [s for s in STRUCTURES if isinstance(s, DynamicTree)]
    config = GenerationConfig(30, trees[0], **option)
    _, log = check_run(target, perturbed(target), config, trees)
    _, _, other = logged(target, perturbed(target), GenerationConfig(30, trees[0]), trees)
    assert not np.array_equal(other.accepted, log.accepted)


@given(structures(), st.integers(50, 200_000))
def test_what_is_drafted_at_once_fits_into_memory(structure, vocabulary):
    most = most_places(structure, vocabulary, DraftOptions())
    if isinstance(structure, DynamicTree):
        widest = structure.top_k if structure.depth > 1 else 1
        distributions = 1 + structure.top_k * (structure.depth - 1)
    else:
        inner = {path[:-1] for path in structure.paths}
        widest, distributions = max(sum(len(p) == d for p in inner) for d in range(7)), len(inner)
    assert 1 <= most <= 1024
    assert most == 1 or (most * widest <= 1024 and 4 * most * distributions * vocabulary <= 2**28)


def test_every_draft_is_released():
    target = random_target()
    drafter = random_drafter(target)
    _, out, _ = logged(target, drafter, GenerationConfig(20, ChainStructure(3)))
    cache = drafter._cache
    assert cache._cache.get_seq_length() == cache.verified == len(PROMPT) + len(out.token_ids) - 1


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_chained_cycles_cover_the_output(accepted):
    lengths = list(chain_cycles(accepted, len(accepted)))
    assert sum(length + 1 for length in lengths[:-1]) < max(1, len(accepted) - 1)
    assert sum(length + 1 for length in lengths) >= len(accepted) - 1
