"""Clustered intervals: against the textbook variance, in degenerate cases, and their coverage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gumiho_simulator.forecasting.intervals import (
    effective_prompts,
    pmf_intervals,
    rate_intervals,
    ratio_interval,
    small_sample_factor,
    tau_interval,
)
from gumiho_theory import AcceptanceCounts, Trace

pytestmark = pytest.mark.filterwarnings("error")


def alike(groups: int, at_risk: list[int], accepted: list[int]) -> AcceptanceCounts:
    return AcceptanceCounts(
        groups=tuple(f"p{i}" for i in range(groups)),
        cycles=np.full(groups, at_risk[0]),
        total_accepted=np.full(groups, sum(accepted)),
        complete_cycles=np.full(groups, at_risk[0]),
        at_risk=np.tile(at_risk, (groups, 1)),
        accepted=np.tile(accepted, (groups, 1)),
    )


def test_the_interval_of_tau_agrees_with_the_linearised_cluster_variance(trace: Trace) -> None:
    counts = trace.counts_by_prompt()
    interval = tau_interval(counts, np.random.default_rng(0), n_resamples=20_000)
    assert interval is not None
    n = len(counts.groups)
    mean = counts.total_accepted.sum() / counts.complete_cycles.sum()
    residual = counts.total_accepted - mean * counts.complete_cycles
    error = np.sqrt(n / (n - 1) * (residual**2).sum()) / counts.complete_cycles.sum()
    half = (interval[1] - interval[0]) / 2
    # t(63) in place of z, both made explicit here.
    assert half == pytest.approx(1.9983 * error, rel=0.04)


def test_resampling_cycles_instead_of_prompts_would_be_too_narrow(trace: Trace) -> None:
    counts = trace.counts_by_prompt()
    interval = tau_interval(counts, np.random.default_rng(0))
    assert interval is not None
    lengths = trace.accepted[trace.complete]
    independent = 1.96 * lengths.std() / np.sqrt(lengths.size)
    assert (interval[1] - interval[0]) / 2 > 1.25 * independent


def test_the_first_survival_rate_and_its_interval_equal_the_conditional_ones(trace: Trace) -> None:
    conditional, survival = rate_intervals(trace.counts_by_prompt(), np.random.default_rng(0))
    for name in ("estimate", "low", "high"):
        assert getattr(conditional, name)[0] == pytest.approx(getattr(survival, name)[0], abs=1e-12)
    inside = (conditional.low < conditional.estimate) & (conditional.estimate < conditional.high)
    assert inside.all()
    assert (survival.low <= survival.estimate).all()
    assert (survival.estimate <= survival.high).all()


@pytest.mark.parametrize("accepted", [[4, 4], [4, 2], [2, 0], [0, 0]])
def test_prompts_that_are_all_alike_neither_warn_nor_claim_certainty(accepted: list[int]) -> None:
    counts = alike(5, [4, accepted[0]], accepted)
    conditional, survival = rate_intervals(counts, np.random.default_rng(0), n_resamples=200)
    assert conditional.high[0] - conditional.low[0] > 0.1
    assert conditional.low[0] <= conditional.estimate[0] <= conditional.high[0]
    assert np.isfinite(survival.low[0])
    tau = tau_interval(counts, np.random.default_rng(0), n_resamples=200)
    assert tau is not None
    assert tau[0] == pytest.approx(tau[1])


def test_a_position_with_fewer_than_two_prompts_at_risk_has_no_interval() -> None:
    counts = AcceptanceCounts(
        groups=("a", "b"),
        cycles=np.array([3, 3]),
        total_accepted=np.array([0, 3]),
        complete_cycles=np.array([3, 3]),
        at_risk=np.array([[3, 0, 0], [3, 2, 1]]),
        accepted=np.array([[0, 0, 0], [2, 1, 0]]),
    )
    conditional, survival = rate_intervals(counts, np.random.default_rng(0), n_resamples=300)
    assert np.isfinite(conditional.low).tolist() == [True, False, False]
    assert np.isfinite(survival.high).tolist() == [True, False, False]
    alone, _ = rate_intervals(counts.select(["b"]), np.random.default_rng(0))
    assert np.isnan(alone.low).all()
    assert alone.estimate[0] == pytest.approx(2 / 3)
    assert tau_interval(counts.select(["b"]), np.random.default_rng(0)) is None


def test_the_exact_binomial_interval_stands_in_where_every_cycle_was_accepted() -> None:
    conditional, _ = rate_intervals(alike(2, [5], [5]), np.random.default_rng(0), n_resamples=100)
    # Clopper and Pearson with 10 of 10: low = 0.025 ** (1 / 10).
    assert conditional.low[0] == pytest.approx(0.025**0.1)
    assert conditional.high[0] == 1.0


def test_length_intervals_hold_their_shares_and_single_prompts_have_none(trace: Trace) -> None:
    table = np.array([[3.0, 1, 2], [0, 4, 1], [2, 2, 2], [0, 0, 0]])
    pmf = pmf_intervals(table, np.random.default_rng(0), n_resamples=500)
    np.testing.assert_allclose(pmf.estimate, table.sum(axis=0) / table.sum())
    assert (pmf.low <= pmf.estimate).all()
    assert (pmf.high >= pmf.estimate).all()
    assert np.isnan(pmf_intervals(table[:1], np.random.default_rng(0)).low).all()


def test_the_small_sample_factor_is_the_t_quantile_and_the_variance_correction() -> None:
    assert small_sample_factor(10) == pytest.approx(np.sqrt(10 / 9) * 2.262157 / 1.959964, rel=1e-6)
    assert small_sample_factor(10_000) == pytest.approx(1.0, abs=1e-3)


def test_one_runaway_prompt_leaves_few_effective_prompts() -> None:
    assert effective_prompts(np.full(20, 7)) == pytest.approx(20)
    assert effective_prompts(np.array([1000] + [1] * 19)) < 1.1
    assert effective_prompts(np.zeros(3, dtype=np.int64)) == 0.0


def test_equal_seeds_give_equal_intervals_and_others_differ(trace: Trace) -> None:
    counts = trace.counts_by_prompt()
    first, again, other = (tau_interval(counts, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first == again != other


def test_a_ratio_without_two_prompts_has_no_interval() -> None:
    assert ratio_interval(np.array([1.0, 2.0]), np.array([1.0, 0.0]), np.random.default_rng(0)) is None


@pytest.mark.slow
def test_intervals_of_tau_cover_the_truth_about_95_percent_of_the_time(
    traces: Callable[..., Trace],
) -> None:
    rng = np.random.default_rng(11)
    truth = float(np.mean([traces(rng, prompts=400).tau() for _ in range(5)]))
    inside = 0
    for repetition in range(200):
        interval = tau_interval(
            traces(rng, prompts=24).counts_by_prompt(), np.random.default_rng(repetition), n_resamples=500
        )
        assert interval is not None
        inside += interval[0] <= truth <= interval[1]
    # 95 % of 200 is 190; a binomial count falls below 180 or above 199 once in several hundred times.
    assert 180 <= inside <= 199
