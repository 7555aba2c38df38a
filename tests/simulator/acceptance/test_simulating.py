"""Compiled simulation: equal to plain loops over the same random numbers, and to the models' own forecasts."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafted_text import draft_texts, draw_texts
from gumiho_simulator.acceptance import HiddenMarkovModel, MixtureModel, Observations
from gumiho_simulator.acceptance.chain.tokens import TokenChain
from gumiho_simulator.acceptance.simulating.draws import alias_tables, cycle_table, matched_shifts, simulate_outputs
from gumiho_simulator.acceptance.simulating.kernel import draw_apart, draw_in_order
from gumiho_theory import InputError, tau


@pytest.fixture(scope="module")
def observed() -> Observations:
    return Observations.of(draft_texts(draw_texts(np.random.default_rng(4), 60, 80, spread=0.3), 4))


@pytest.fixture(scope="module")
def hidden(observed: Observations) -> HiddenMarkovModel:
    return HiddenMarkovModel.fit(observed)


def in_order_by_loop(start, chances, others, outputs, tokens, generator):  # type: ignore[no-untyped-def]
    """Return the accepted lengths of each output, a draw at a time."""
    states, size = chances.shape
    texts = []
    for _ in range(outputs):
        state = min(int(np.searchsorted(start, generator.random(), side="right")), states - 1)
        lengths: list[int] = []
        while sum(length + 1 for length in lengths) < tokens:
            luck = generator.random() * size
            outcome = int(luck) if luck - int(luck) < chances[state, int(luck)] else int(others[state, int(luck)])
            lengths.append(outcome // states)
            state = outcome % states
        texts.append(lengths)
    return texts


def apart_by_loop(laws, tokens, generator):  # type: ignore[no-untyped-def]
    texts = []
    for law in laws:
        lengths: list[int] = []
        while sum(length + 1 for length in lengths) < tokens:
            lengths.append(min(int(np.searchsorted(law, generator.random(), side="right")), law.size - 1))
        texts.append(lengths)
    return texts


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_compiled_draws_are_those_of_plain_loops(
    seed: int, states: int, length: int, outputs: int, tokens: int
) -> None:
    rng = np.random.default_rng(seed)
    start = np.cumsum(rng.dirichlet(np.ones(states)))
    tables = alias_tables(rng.dirichlet(np.full(states * (length + 1), 0.3), states))
    laws = np.cumsum(rng.dirichlet(np.full(length + 1, 0.5), outputs), axis=1)
    fast = draw_in_order(start, *tables, outputs, tokens, np.random.default_rng(seed))
    slow = in_order_by_loop(start, *tables, outputs, tokens, np.random.default_rng(seed))
    for (accepted, starts), texts in (
        (fast, slow),
        (
            draw_apart(laws, tokens, np.random.default_rng(seed)),
            apart_by_loop(laws, tokens, np.random.default_rng(seed)),
        ),
    ):
        assert [accepted[a:b].tolist() for a, b in pairwise(starts)] == texts


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_alias_tables_hold_the_very_law(seed: int, rows: int, size: int) -> None:
    law = np.random.default_rng(seed).dirichlet(np.full(size, 0.2), rows)
    chances, others = alias_tables(law)
    drawn = chances / size
    for row in range(rows):
        np.add.at(drawn[row], others[row], (1 - chances[row]) / size)
    np.testing.assert_allclose(drawn, law, atol=1e-12)


def test_a_cycle_s_table_is_the_chain_s_own_law() -> None:
    chain = TokenChain(2, 3, np.array([-0.4, 1.9, -0.2, -0.1, 2.0, 0.4, -0.5]))
    start, table = cycle_table(chain, np.zeros(5))
    np.testing.assert_allclose(table.sum(axis=(1, 2)), 1, atol=1e-12)
    assert start.sum() == pytest.approx(1)
    stationary = chain.cycle_starts(4)
    np.testing.assert_allclose(stationary @ table.sum(axis=1), stationary, atol=1e-9)
    survival = 1 - np.cumsum((stationary @ table.sum(axis=2))[:-1])
    np.testing.assert_allclose(survival, np.cumprod(chain.chain_rates(4)), atol=1e-9)


@pytest.mark.parametrize("depth", [1, 4, 6])
def test_simulated_tau_of_the_hidden_difficulty_is_its_forecast(hidden: HiddenMarkovModel, depth: int) -> None:
    rates = hidden.chain.chain_rates(depth, matched_shifts(hidden, depth))
    np.testing.assert_allclose(rates, hidden.conditional(depth), atol=1e-9)
    made = simulate_outputs(hidden, depth, 200, 2000, np.random.default_rng(depth))
    spread = [made.accepted[a:b].mean() for a, b in pairwise(made.starts)]
    error = np.std(spread, ddof=1) / np.sqrt(len(spread))
    assert abs(made.tau() - tau(hidden.conditional(depth))) < 5 * error + 0.001


def test_simulated_cycles_are_alike_near_one_another_as_the_text_is(hidden: HiddenMarkovModel) -> None:
    made = simulate_outputs(hidden, 4, 1, 200_000, np.random.default_rng(0))
    lengths = made.accepted.astype(float)
    assert np.corrcoef(lengths[:-1], lengths[1:])[0, 1] > 0.05


def test_prompts_of_a_mixture_differ_by_its_spread_and_independent_cycles_do_not(observed: Observations) -> None:
    fitted = MixtureModel.fit(observed)
    wide = MixtureModel(observed, fitted.levels, 1.0)
    even = MixtureModel(observed, fitted.levels, 1e-9)
    means = []
    for model in (wide, even):
        made = simulate_outputs(model, 6, 300, 1000, np.random.default_rng(1))
        means.append([made.accepted[a:b].mean() for a, b in pairwise(made.starts)])
    assert np.std(means[0]) > 4 * np.std(means[1])
    rates = np.append(1 / (1 + np.exp(-fitted.levels)), [1 / (1 + np.exp(-fitted.levels[-1]))] * 2)
    assert 1 + np.mean(means[1]) == pytest.approx(tau(rates), rel=0.01)


def test_what_cannot_be_simulated_is_refused(hidden: HiddenMarkovModel) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="draft length: found 0"):
        simulate_outputs(hidden, 0, 1, 1, rng)
    for outputs, tokens in ((0, 1), (1, 0), (2**20, 2**20)):
        with pytest.raises(InputError, match="outputs x tokens"):
            simulate_outputs(hidden, 3, outputs, tokens, rng)


def test_numba_is_imported_only_where_a_kernel_is_called() -> None:
    program = "import sys, gumiho_simulator.commands, gumiho_simulator.replaying\n"
    program += "import gumiho_simulator.acceptance.simulating\n"
    program += "assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
