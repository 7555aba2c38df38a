"""The acceptance models against plain loops over cycles, and their refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_simulator.acceptance import GeometricModel, HazardModel, Observations, model_class, simulate_lengths
from gumiho_theory import AcceptanceCounts, InputError, Trace, conditional_to_survival


def counts_of(at_risk: Any, accepted: Any) -> AcceptanceCounts:
    at_risk, accepted = np.array(at_risk), np.array(accepted)
    return AcceptanceCounts(
        groups=tuple(f"p{i}" for i in range(len(at_risk))),
        cycles=at_risk[:, 0],
        total_accepted=accepted.sum(axis=1),
        complete_cycles=at_risk[:, 0],
        at_risk=at_risk,
        accepted=accepted,
    )


def observed(at_risk: Any, accepted: Any) -> Observations:
    return Observations(counts_of(at_risk, accepted))


def test_hazard_equals_a_plain_loop_over_cycles_with_censoring(trace: Trace) -> None:
    at_risk, accepted = [0] * trace.depth, [0] * trace.depth
    for row in range(trace.n_cycles):
        cut = int(trace.censored_at[row])
        for i in range(1, int(trace.drafted[row]) + 1):
            if trace.accepted[row] >= i - 1 and (cut == -1 or i <= cut):
                at_risk[i - 1] += 1
                accepted[i - 1] += trace.accepted[row] >= i
    expected = [k / n for k, n in zip(accepted, at_risk, strict=True)]
    model = HazardModel.fit(Observations.of(trace))
    np.testing.assert_allclose(model.conditional(trace.depth), expected, rtol=1e-14)
    rate = GeometricModel.fit(Observations.of(trace)).rate
    assert rate == pytest.approx(sum(accepted) / sum(at_risk), rel=1e-14)


def test_censored_cycles_stay_at_risk_only_up_to_the_cut() -> None:
    row = {"task": None, "turn": 0, "position": 0, "drafted": 3, "nodes": 4, "censored_at": None}
    full = row | {"prompt_id": "a", "cycle": 0, "accepted": 1, "committed": 2}
    cut = row | {"prompt_id": "a", "cycle": 1, "position": 2, "accepted": 2, "committed": 2, "censored_at": 2}
    model = HazardModel.fit(Observations.of(Trace.from_rows([full, cut])))
    np.testing.assert_array_equal(model.conditional(2), [1.0, 0.5])
    # Position 3: the only cycle that got past 2 was cut there, so its rate is unknown.
    assert model.support == 2
    with pytest.raises(InputError, match="at most 2"):
        model.conditional(3)


def test_nothing_survives_a_rate_of_zero_so_deeper_positions_are_determined() -> None:
    model = HazardModel.fit(observed([[4, 2, 0]], [[2, 0, 0]]))
    assert model.support == 3
    np.testing.assert_array_equal(conditional_to_survival(model.conditional(3)), [0.5, 0.0, 0.0])


@pytest.mark.parametrize("make", [HazardModel.fit, GeometricModel.fit])
def test_the_fit_maximises_the_likelihood(make: Callable[[Observations], Any]) -> None:
    counts = counts_of([[10, 6], [8, 7]], [[6, 2], [7, 5]])
    log = Observations(counts)
    best = make(log).log_likelihood(log)
    for shift in (-0.02, 0.02):
        moved = make(log).conditional(2) + shift
        n, k = counts.at_risk.sum(axis=0), counts.accepted.sum(axis=0)  # type: ignore[union-attr]
        worse = sum(k[i] * math.log(moved[i]) + (n[i] - k[i]) * math.log(1 - moved[i]) for i in range(2))
        assert worse < best


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6),
    st.integers(0, 2**32),
)
def test_refitting_to_weights_equals_fitting_to_repeated_prompts(sizes: list[tuple[int, int, int]], seed: int) -> None:
    at_risk = [[n, min(k, n)] for n, k, _ in sizes]
    accepted = [[min(k, n), min(j, k, n)] for n, k, j in sizes]
    counts = counts_of(at_risk, accepted)
    weights = np.random.default_rng(seed).multinomial(len(sizes), [1 / len(sizes)] * len(sizes))
    chosen = np.repeat(np.arange(len(sizes)), weights)
    repeated = counts_of(np.array(at_risk)[chosen], np.array(accepted)[chosen])
    for kind in (HazardModel, GeometricModel):
        model, again = kind.fit(Observations(counts)), kind.fit(Observations(repeated))
        depth = min(model.support, again.support)
        refit = model.refitted(weights[None].astype(np.float64), depth)[0]
        np.testing.assert_allclose(
            conditional_to_survival(refit), conditional_to_survival(again.conditional(depth)), atol=1e-12
        )


def test_a_likelihood_contradicted_by_a_rate_of_one_is_minus_infinity_and_smoothing_mends_it() -> None:
    model = HazardModel.fit(observed([[5]], [[5]]))
    other = observed([[5]], [[4]])
    assert model.log_likelihood(other) == -math.inf
    assert math.isfinite(model.log_likelihood(other, smoothing=0.5))
    assert model.log_likelihood(Observations(model.counts)) == 0.0


def test_an_unknown_model_is_named_with_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"'weibull'.*hazard, geometric, mixture, hmm, rank"):
        model_class("weibull")


def test_counts_without_positions_or_without_cycles_are_refused() -> None:
    zeros = np.array([3])
    totals = AcceptanceCounts(("a",), zeros, zeros, zeros)
    with pytest.raises(InputError, match="positions"):
        HazardModel.fit(Observations(totals))
    with pytest.raises(InputError, match="no cycle at risk"):
        GeometricModel.fit(observed([[0, 0]], [[0, 0]]))


def test_independent_cycles_are_drawn_by_their_number_not_one_by_one() -> None:
    model = HazardModel.fit(observed([[100, 80, 20]], [[80, 20, 10]]))
    lengths = simulate_lengths(model, 3, 10**15, np.random.default_rng(0))
    np.testing.assert_allclose(lengths / 1e15, [0.2, 0.6, 0.1, 0.1], atol=1e-6)
    assert lengths.sum() == 10**15
    with pytest.raises(InputError, match="cycles"):
        simulate_lengths(model, 3, -1, np.random.default_rng(0))
