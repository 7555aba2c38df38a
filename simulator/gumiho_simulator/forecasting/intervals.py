"""95 % intervals that respect clustering: whole prompts are resampled, never single cycles.

Cycles of one prompt are alike, so cycles are far fewer independent observations than their number suggests;
design effects of 2 to 600 were measured on public logs. Resampling prompts is right for many prompts and
too narrow for few, so each percentile interval is stretched about its estimate by sqrt(n / (n - 1)) t / z
(see `small_sample_factor`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gumiho_simulator.acceptance.observed.counts import positions
from gumiho_theory import AcceptanceCounts
from gumiho_theory.types import FloatArray, IntArray

LEVEL = 0.95
_CELLS = 4_000_000  # resampled numbers held in memory at once


@dataclass(frozen=True)
class Interval:
    """Estimates with their 95 % limits, clustered by prompt; nan where fewer than two prompts inform the estimate."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def unknown(cls, estimate: FloatArray) -> Interval:
        """Return estimates without limits."""
        nothing = np.full(estimate.shape, np.nan)
        return cls(estimate, nothing, nothing)


def small_sample_factor(prompts: float) -> float:
    """By how much a percentile interval over n resampled prompts has to be stretched: sqrt(n / (n - 1)) t / z.

    The bootstrap's variance is (n - 1) / n of the unbiased one, and a variance estimated from n prompts calls for
    Student's t with n - 1 degrees of freedom instead of the normal quantile: 1.06 at 32 prompts, 1.22 at 10. n is the
    effective number when cycles per prompt vary, at least 2 (smaller values count as 2).
    """
    from scipy.stats import norm, t

    n = max(prompts, 2.0)
    upper = 0.5 + LEVEL / 2
    return float(np.sqrt(n / (n - 1)) * t.ppf(upper, n - 1) / norm.ppf(upper))


def effective_prompts(cycles: IntArray | FloatArray) -> float:
    """Kish's effective number of prompts, (sum w)^2 / sum w^2, for cycles per prompt [G] as weights.

    Between 1 and G; 0 without cycles. A few runaway outputs that hold most cycles bring it down.
    """
    weights = np.asarray(cycles, dtype=np.float64)
    square = float((weights**2).sum())
    return float(weights.sum()) ** 2 / square if square else 0.0


def stretch(estimate: FloatArray, draws: FloatArray, factor: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Take the percentiles of resampled values [..., B] and stretch them by a factor about the estimate [...].

    Limits are not clipped. A draw is nan where a resample says nothing, a limit where every draw is nan.
    """
    tail = (1 - LEVEL) / 2
    low, high = np.full(estimate.shape, np.nan), np.full(estimate.shape, np.nan)
    some = np.isfinite(draws).any(axis=-1) & np.isfinite(estimate)
    if some.any():
        low[some], high[some] = np.nanquantile(draws[some], [tail, 1 - tail], axis=-1)
    return estimate + factor * (low - estimate), estimate + factor * (high - estimate)


def resample(
    statistic: Callable[[IntArray], FloatArray],
    prompts: int,
    cells: int,
    generator: np.random.Generator,
    n_resamples: int,
) -> FloatArray:
    """Evaluate S statistics on B resamples of at least two prompts, [S, B] (`scipy.stats.bootstrap`).

    `statistic` maps prompt indices [..., n] to values [S, ...]; `cells`, the numbers that one resample holds in memory,
    set the batch.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    with warnings.catch_warnings():
        # Only the resampled values are used here; those that are nan are dealt with by `stretch`.
        warnings.simplefilter("ignore", DegenerateDataWarning)
        result = bootstrap(
            (np.arange(prompts),),
            lambda index, axis: statistic(np.moveaxis(index, axis, -1)),
            n_resamples=n_resamples,
            batch=max(1, _CELLS // max(cells, 1)),
            vectorized=True,
            method="percentile",
            rng=generator,
        )
    return np.asarray(result.bootstrap_distribution, dtype=np.float64)


def resample_ratios(
    part: FloatArray, whole: FloatArray, cells: int, generator: np.random.Generator, n_resamples: int
) -> FloatArray:
    """Evaluate ratios of whole numbers [G, S], summed over resampled prompts; see `resample`.

    nan where a resample's denominator is 0.
    """

    def ratios(index: IntArray) -> FloatArray:
        above, below = part[index].sum(axis=-2), whole[index].sum(axis=-2)
        ratio = np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0)
        return np.moveaxis(ratio, -1, 0)

    return resample(ratios, len(part), cells, generator, n_resamples)


def rate_intervals(
    counts: AcceptanceCounts, generator: np.random.Generator, n_resamples: int = 2000
) -> tuple[Interval, Interval]:
    """Conditional and survival rates by draft position with prompt-clustered 95 % intervals.

    Returns
    -------
    conditional, survival : Interval, arrays [D]
        Pooled rates (micro). Where fewer than two prompts were at risk, no interval (nan). Where resampling shows no
        spread at all (every cycle accepted, or prompts all alike), an interval is the exact binomial one of the pooled
        cycles (Clopper and Pearson, 1934), since a width of zero would claim certainty.

    Raises
    ------
    InputError
        The counts lack positions.
    """
    at_risk, accepted = positions(counts)
    conditional, survival = counts.conditional(), counts.survival()
    if len(at_risk) < 2:
        return Interval.unknown(conditional), Interval.unknown(survival)
    draws = resample_ratios(accepted, at_risk, at_risk.size * 2, generator, n_resamples)
    # A resample that no cycle takes to a position says nothing of its conditional rate, but its survival is 0.
    surviving = np.cumprod(np.nan_to_num(draws), axis=0, dtype=np.float64)
    informed = (at_risk > 0).sum(axis=0)
    begun = np.full(at_risk.shape[1], at_risk[:, 0].sum())
    return (
        _rate_interval(conditional, draws, informed, at_risk.sum(axis=0), accepted.sum(axis=0)),
        _rate_interval(survival, surviving, informed, begun, np.nan_to_num(survival) * begun),
    )


def _rate_interval(
    estimate: FloatArray, draws: FloatArray, informed: IntArray, trials: FloatArray, successes: FloatArray
) -> Interval:
    """Return limits of rates [D] by their resampled values [D, B] and the number of prompts behind each."""
    low, high = stretch(estimate, draws, np.array([small_sample_factor(n) for n in informed]))
    flat = np.nanmax(draws, axis=-1, initial=-1) - np.nanmin(draws, axis=-1, initial=2) < 1e-12
    exact_low, exact_high = _exact_binomial(trials, successes)
    few = informed < 2
    low, high = (
        np.where(few, np.nan, np.clip(np.where(flat, exact, limit), 0, 1))
        for exact, limit in ((exact_low, low), (exact_high, high))
    )
    return Interval(estimate, low, high)


def tau_interval(
    counts: AcceptanceCounts, generator: np.random.Generator, n_resamples: int = 2000
) -> tuple[float, float] | None:
    """Prompt-clustered 95 % interval of tau (bonus included, micro, complete cycles).

    Returns
    -------
    tuple of float or None
        Limits, at least 1; None with fewer than two prompts that hold a complete cycle.
    """
    limits = ratio_interval(counts.total_accepted, counts.complete_cycles, generator, n_resamples)
    return None if limits is None else (1 + limits[0], 1 + limits[1])


def ratio_interval(
    part: IntArray | FloatArray,
    whole: IntArray | FloatArray,
    generator: np.random.Generator,
    n_resamples: int = 2000,
    least: float = 0.0,
) -> tuple[float, float] | None:
    """Prompt-clustered 95 % interval of a ratio of sums [G], such as mean time a cycle, that is at least `least`.

    Prompts whose denominator is 0 are left out; None with fewer than two others.
    """
    below = np.asarray(whole, dtype=np.float64)
    above = np.asarray(part, dtype=np.float64)[below > 0]
    below = below[below > 0]
    if below.size < 2:
        return None
    draws = resample(
        lambda index: above[index].sum(axis=-1) / below[index].sum(axis=-1),
        below.size,
        below.size * 2,
        generator,
        n_resamples,
    )
    factor = small_sample_factor(effective_prompts(below))
    low, high = stretch(np.array(above.sum() / below.sum()), draws, factor)
    return max(float(low), least), float(high)


def pmf_intervals(by_prompt: FloatArray, generator: np.random.Generator, n_resamples: int = 2000) -> Interval:
    """P(L = 0..D), pooled over cycles, with prompt-clustered 95 % intervals, arrays [D + 1].

    From the complete cycles of each prompt by accepted length [G, D + 1], at least one in all.
    """
    by_prompt = by_prompt[by_prompt.sum(axis=1) > 0]
    pooled = by_prompt.sum(axis=0) / by_prompt.sum()
    if len(by_prompt) < 2:
        return Interval.unknown(pooled)
    whole = np.broadcast_to(by_prompt.sum(axis=1, keepdims=True), by_prompt.shape)
    draws = resample_ratios(by_prompt, whole, by_prompt.size, generator, n_resamples)
    low, high = stretch(pooled, draws, small_sample_factor(effective_prompts(whole[:, 0])))
    return Interval(pooled, np.clip(low, 0, 1), np.clip(high, 0, 1))


def _exact_binomial(trials: FloatArray, successes: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.stats import beta

    tail = (1 - LEVEL) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(successes > 0, beta.ppf(tail, successes, trials - successes + 1), 0.0)
        high = np.where(successes < trials, beta.ppf(1 - tail, successes + 1, trials - successes), 1.0)
    return low, high
