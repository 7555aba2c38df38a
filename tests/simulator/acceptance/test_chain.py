"""The token chain against plain sums over hidden paths, its likelihood's gradient, and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafted_text import trace_of
from gumiho_simulator.acceptance.chain.likelihood import Pieces, log_likelihood
from gumiho_simulator.acceptance.chain.tokens import TokenChain
from gumiho_simulator.acceptance.observed.cycle_log import CycleLog
from gumiho_theory import InputError, Trace


def parameters(states: int, depths: int) -> int:
    return states + depths - 1 + (1 if states == 2 else states) + states - 1 + 1


@st.composite
def chains(draw: st.DrawFn) -> TokenChain:
    states, depths = draw(st.sampled_from([2, 3])), draw(st.integers(1, 3))
    size = parameters(states, depths)
    theta = draw(st.lists(st.floats(-2.5, 2.5), min_size=size, max_size=size))
    return TokenChain(states, depths, np.array(theta))


def by_paths(chain: TokenChain, lengths: list[tuple[int, int]]) -> float:
    """Likelihood of outcomes (accepted, end) as a sum over the difficulties of all tokens and unseen mistakes."""
    matrix, stationary = chain.difficulties()
    s = chain.states

    def right(depth: int, behind_wrong: bool, z: int) -> float:
        return float(chain.rates(min(depth, chain.depths))[int(behind_wrong)][z])

    # A token a position: True it must be right, False it must be wrong, None whatever it would have been.
    tokens: list[tuple[int, bool | None]] = []
    for accepted, end in lengths:
        tokens += [(i, True) for i in range(1, accepted + 1)]
        tokens += {0: [(accepted + 1, False)], 1: [(accepted + 1, None)], 2: []}[end]
    choices = [[wanted] if wanted is not None else [True, False] for _, wanted in tokens]
    total = 0.0
    for z in itertools.product(range(s), repeat=len(tokens) + 1):
        for first, *rights in itertools.product([True, False], *choices):
            p = stationary[z[0]] * (right(1, False, z[0]) if first else 1 - right(1, False, z[0]))
            wrong_before = not first
            for (depth, _), ok, old, new in zip(tokens, rights, z[:-1], z[1:], strict=True):
                chance = right(depth, wrong_before, new)
                p *= matrix[old, new] * (chance if ok else 1 - chance)
                wrong_before = not ok
            total += p
    return total


@settings(max_examples=25, deadline=None)
@given(chains(), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=2), st.integers(0, 2))
def test_the_forward_pass_is_the_sum_over_all_hidden_paths(
    chain: TokenChain, lengths: list[tuple[int, int]], last: int
) -> None:
    outcomes = [*lengths, (last, 2)][-2:]  # a cycle cut short can only be the last
    codes = np.array([3 * accepted + end for accepted, end in outcomes])
    log = CycleLog(3, ("a",), np.array([0]), np.array([0, len(codes)]), codes)
    value, _ = log_likelihood(chain, Pieces.of(log))
    assert value[0] == pytest.approx(np.log(by_paths(chain, outcomes)), abs=1e-9)


@settings(max_examples=6, deadline=None)
@given(chains(), st.integers(0, 2**32))
def test_scores_by_prompt_are_the_derivatives_of_the_likelihood(chain: TokenChain, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Three prompts, two of them with two outputs, one longer than a piece.
    sizes, owners = [4, 3, 300, 1, 2], [0, 1, 1, 2, 0]
    codes = np.concatenate([3 * rng.integers(0, 3, n) + rng.integers(0, 2, n) for n in sizes])
    log = CycleLog(3, ("a", "b", "c"), np.array(owners), np.cumsum([0, *sizes]), codes)
    pieces = Pieces.of(log)
    _, score = log_likelihood(chain, pieces)
    for k in range(chain.theta.size):
        step = 1e-5 * np.eye(chain.theta.size)[k]
        up, down = (
            log_likelihood(TokenChain(chain.states, chain.depths, chain.theta + sign * step), pieces)[0]
            for sign in (1, -1)
        )
        np.testing.assert_allclose(score[:, k], (up - down) / 2e-5, rtol=1e-4, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(chains(), st.integers(1, 6))
def test_no_chain_is_nearly_periodic_and_its_cycle_starts_are_stationary(chain: TokenChain, length: int) -> None:
    matrix, shares = chain.difficulties()
    eigenvalues = np.linalg.eigvals(matrix)
    assert eigenvalues.real.min() > -1e-12
    assert abs(eigenvalues.imag).max() < 1e-9
    np.testing.assert_allclose(shares @ matrix, shares, atol=1e-12)
    starts = chain.cycle_starts(length)
    codes = np.array([*(3 * accepted for accepted in range(length)), 3 * length + 1])
    restart = chain.symbols(codes).sum(axis=0)
    np.testing.assert_allclose(restart.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(starts @ restart, starts, atol=1e-9)


def test_without_difference_between_tokens_every_draft_length_has_the_same_rates() -> None:
    chain = TokenChain(2, 3, np.array([0.7, 0.7, -0.2, -0.1, 2.0, 0.3, -40.0]))
    expected = 1 / (1 + np.exp(-np.array([0.7, 0.5, 0.4, 0.4, 0.4])))
    for length in (1, 3, 5):
        np.testing.assert_allclose(chain.chain_rates(length), expected[:length], atol=1e-8)


@pytest.mark.parametrize("length", [1, 4])
def test_simulated_cycles_have_the_stationary_rates(length: int) -> None:
    chain = TokenChain(2, 3, np.array([-0.4, 1.9, -0.2, -0.1, 2.0, 0.4, -0.5]))
    lengths = chain.simulate(length, 60_000, np.random.default_rng(length))
    exact = np.cumprod(chain.chain_rates(length))
    for i, survival in enumerate(exact, start=1):
        # Cycles of one text are alike: five standard errors of independent cycles, doubled.
        assert (lengths >= i).mean() == pytest.approx(survival, abs=10 * np.sqrt(0.25 / len(lengths)))


def test_longer_drafts_begin_where_the_text_is_harder() -> None:
    chain = TokenChain(2, 1, np.array([-0.4, 1.9, 2.5, 0.4, -1.2]))
    first = [chain.chain_rates(length)[0] for length in (1, 2, 4, 8)]
    assert first == sorted(first, reverse=True)
    assert first[0] > first[-1] + 0.05


def test_the_order_of_cycles_survives_interleaved_prompts_turns_and_stops() -> None:
    row = {"task": None, "nodes": 4, "drafted": 3, "censored_at": None}
    rows = [
        row | {"prompt_id": "b", "turn": 0, "cycle": 0, "position": 0, "accepted": 3, "committed": 4},
        row | {"prompt_id": "a", "turn": 0, "cycle": 0, "position": 0, "accepted": 1, "committed": 2},
        row | {"prompt_id": "b", "turn": 1, "cycle": 0, "position": 9, "accepted": 0, "committed": 1},
        row | {"prompt_id": "b", "turn": 0, "cycle": 1, "position": 4, "accepted": 2, "committed": 2, "censored_at": 2},
    ]
    log = CycleLog.of(Trace.from_rows(rows))
    assert log.prompts == ("b", "a")
    np.testing.assert_array_equal(log.codes, [3 * 3 + 1, 3 * 2 + 2, 0, 3])
    np.testing.assert_array_equal(log.starts, [0, 2, 3, 4])
    np.testing.assert_array_equal(log.prompt_of, [0, 0, 1])
    again = CycleLog.from_json(log.to_json(), ("b", "a"))
    np.testing.assert_array_equal(again.codes, log.codes)
    only = log.select(["a"])
    np.testing.assert_array_equal(only.codes, [3])
    assert only.prompts == ("a",)


@pytest.mark.parametrize(
    "change",
    [
        {"depth": -1},
        {"depth": True},
        {"prompts": ["p1"]},
        {"outputs": 3},
        {"outputs": [[0]]},
        {"outputs": [[5, "0"]]},
        {"outputs": [[0, ""]]},
        {"outputs": [[0, "0 x"]]},
        {"outputs": [[0, "99"]]},
        {"outputs": [[0, "6"]]},
    ],
)
def test_cycles_that_are_no_log_are_refused(change: dict[str, object]) -> None:
    log = CycleLog.of(trace_of([[0, 2]], 2))
    with pytest.raises(InputError, match="cycles"):
        CycleLog.from_json(log.to_json() | change, ("p0",))
