"""A replayed structure is the run that was not made: cycle by cycle, whatever ends the output, tau included."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate
from gumiho_simulator.replaying.cycles import replay, replay_cycles
from gumiho_theory import ChainStructure, DynamicTree, StaticTree
from logged import PROMPT, STATIC, logged, perturbed, scripted, structures, text

DEEP = ChainStructure(6)
WIDE = StaticTree(((1,), (2,), (9,), (2, 1), (9, 12), (1, 1), (1, 30), (1, 1, 1), (1, 1, 2)))  # beyond the 3 logged
OTHERS = [ChainStructure(1), ChainStructure(3), ChainStructure(6), STATIC, WIDE]


def measured(target, drafter, config):
    recorder = Recorder()
    out = generate(target, drafter, PROMPT, config, recorder.prompt("a", "task", 0))
    return out, recorder.trace({})


def check(target, drafter, config, asked=OTHERS):
    """The log of one run, which holds `config`'s structure alone, replays as each run of `asked`."""
    _, out, log = logged(target, drafter, config, [DEEP])
    for structure in asked:
        again, trace = measured(target, drafter, replace(config, structure=structure))
        assert again.token_ids == out.token_ids
        cycles = replay_cycles(log, structure)
        assert log.position[cycles.row].tolist() == trace.position.tolist(), structure
        assert cycles.accepted.tolist() == trace.accepted.tolist(), structure
        assert cycles.complete.tolist() == trace.complete.tolist(), structure
        assert not cycles.tied.any()
        (row,) = replay(log, [structure])
        assert (row.tau, row.cycles, row.exact) == (trace.tau(), trace.n_cycles, True)
    return out, log


def test_outputs_that_end_by_length():
    out, _ = check(random_target(), scripted(), GenerationConfig(40, DEEP))
    assert out.stop_reason == "length"


@pytest.mark.parametrize("at", [1, 3, 5, 8, 20])
def test_outputs_that_end_with_a_stop_id(at):
    eos = text(3, 80)[at]
    out, _ = check(random_target(3, eos=eos), scripted(3), GenerationConfig(40, DEEP))
    assert out.stop_reason == "eos"


@pytest.mark.parametrize("behind", [1, 2, 5, 6])
def test_a_stop_id_behind_the_end_of_an_output(behind):
    """Right behind it as well, where the rows are those of an output that the stop id ended."""
    tokens = text(0, 80)
    limit = next(n for n in range(10, 40) if tokens[n + behind - 1] not in tokens[: n + behind - 1])
    config = GenerationConfig(limit, DEEP, stop_token_ids=(tokens[limit + behind - 1],))
    out, _ = check(random_target(), scripted(rank=lambda place: 1), config)
    assert out.stop_reason == "length"


def test_a_stop_string_right_before_a_stop_id():
    tokens = text(0, 80)
    end = next(n for n in range(10, 40) if tokens[n] not in tokens[:n])
    string = random_target().decode(tokens[end - 3 : end])
    config = GenerationConfig(60, DEEP, stop_strings=(string,), stop_token_ids=(tokens[end],))
    out, _ = check(random_target(), scripted(rank=lambda place: 1), config)
    assert (out.stop_reason, len(out.token_ids)) == ("stop_string", end)


@pytest.mark.parametrize("positions", [12, 15, 30])
def test_outputs_that_end_with_the_context(positions):
    out, _ = check(random_target(1, positions=positions), scripted(1), GenerationConfig(60, DEEP), OTHERS[:2])
    assert out.stop_reason == "context"


def test_a_draft_model_that_a_text_outgrows():
    target = random_target(2)
    check(target, perturbed(target, 20), GenerationConfig(20, DEEP))


def test_heads_drafted_in_parallel():
    """Behind the serial positions a node's candidates depend on its serial branch, which is the true one here."""
    target = random_target(1, spread=0.1)
    _, log = check(target, random_drafter(target), GenerationConfig(24, DEEP), [ChainStructure(4), WIDE])
    assert (log.rank[:, 3:] > 1).any()


def test_a_dynamic_tree_that_the_log_holds():
    target, tree = random_target(), DynamicTree(total=12, top_k=3, depth=5, mlp_topk=4)
    drafter = perturbed(target)
    _, _, log = logged(target, drafter, GenerationConfig(40, DEEP), [DEEP, tree])
    _, trace = measured(target, drafter, GenerationConfig(40, tree))
    assert replay_cycles(log, str(tree)).accepted.tolist() == trace.accepted.tolist()
    assert replay(log, [tree])[0].tau == trace.tau()


@pytest.mark.parametrize("seed", range(2))
def test_a_sampled_text_with_top_candidates_given_the_text(seed):
    """The run of another structure draws another text, so that only the logged run's own can be compared."""
    target = random_target()
    for structure in (ChainStructure(4), STATIC):
        config = GenerationConfig(40, structure, temperature=1.5, top_p=0.95, seed=seed)
        trace, _, log = logged(target, perturbed(target), config, [DEEP])
        cycles = replay_cycles(log, structure)
        assert cycles.accepted.tolist() == trace.accepted.tolist()
        assert cycles.complete.tolist() == trace.complete.tolist()
        assert "drawn" in (replay(log, [structure])[0].note or "")


@given(
    st.lists(st.integers(0, 4), min_size=12, max_size=12),
    structures().filter(lambda structure: not isinstance(structure, DynamicTree)),
    st.integers(2, 14),
    st.none() | st.integers(1, 14),
)
@settings(max_examples=15, deadline=None)
def test_whatever_is_drafted_and_wherever_it_ends(ranks, structure, limit, at):
    eos = None if at is None else text(0, 80)[at]
    target = random_target(0, eos=eos)
    drafter = scripted(rank=lambda place: ranks[place % 12])
    trace, _, log = logged(target, drafter, GenerationConfig(limit, structure), [DEEP])
    if log.n_rows:
        cycles = replay_cycles(log, structure)
        assert cycles.accepted.tolist() == trace.accepted.tolist()
        assert cycles.complete.tolist() == trace.complete.tolist()
