"""How far probabilities are from what happened: calibration error over equal-mass bins, and how much of it is noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gumiho_simulator.forecasting.intervals import Interval, resample_ratios, small_sample_factor, stretch
from gumiho_theory.types import BoolArray, FloatArray, IntArray

BINS = 15
_SIGNS = 400
_DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Scored:
    """Probabilities [M] beside what happened, and each one's prompt, numbered from 0: those of one prompt are alike."""

    probability: FloatArray
    right: BoolArray
    prompt: IntArray


@dataclass(frozen=True)
class CalibrationError:
    """Expected calibration error, sum over bins of abs(forecast - observed) / M, in units of probability.

    Parameters
    ----------
    error
        What few prompts add by chance is in it.
    noise
        What probabilities without any error would show on average with these prompts.
    lo, hi
        95 % limits of the error without what chance adds to it, prompts resampled (the reverse percentile interval:
        resampling adds to the error what these prompts added already); None with fewer than two prompts.
    """

    error: float
    noise: float
    lo: float | None
    hi: float | None


def bin_by_mass(probability: FloatArray, bins: int = BINS) -> IntArray:
    """Return the bin [M] of each probability, ascending with it: all hold the same sum, to within one of them.

    With bins of equal number nearly all would lie where a draft's many hopeless candidates are.
    """
    order = np.argsort(probability, kind="stable")
    sums = np.cumsum(probability[order])
    total = max(float(sums[-1]), np.finfo(np.float64).tiny) if len(sums) else 1.0
    # By the middle of each one's own mass, so that rounding at the upper end of a bin does not matter.
    middle = (sums - probability[order] / 2) / total
    where = np.empty(len(order), dtype=np.int64)
    where[order] = np.minimum((middle * bins).astype(np.int64), bins - 1)
    return where


def calibration_error(scored: Scored, generator: np.random.Generator, bins: int = BINS) -> CalibrationError:
    """Measure calibration error and its noise over bins of equal mass.

    The noise is the error's mean after the residuals of each prompt have been given one random sign: what is common to
    the prompts cancels, and their spread remains.
    """
    prompts = int(scored.prompt.max()) + 1
    cell = bin_by_mass(scored.probability, bins) * prompts + scored.prompt
    residual = scored.right - scored.probability
    sums = np.bincount(cell, weights=residual, minlength=bins * prompts).reshape(bins, prompts)
    signs = generator.choice([-1.0, 1.0], size=(prompts, _SIGNS))
    count = len(residual)
    error = float(np.abs(sums.sum(axis=1)).sum() / count)
    noise = float(np.abs(sums @ signs).sum(axis=0).mean() / count)
    lo, hi = _limits(error, np.asarray(sums, dtype=np.float64), scored)
    return CalibrationError(error, noise, lo, hi)


def _limits(error: float, sums: FloatArray, scored: Scored) -> tuple[float | None, float | None]:
    """Resample prompts, each with its residuals by bin [B, G] and its number of outcomes."""
    size = np.bincount(scored.prompt, minlength=sums.shape[1]).astype(np.float64)
    prompts = np.flatnonzero(size)
    if len(prompts) < 2:
        return None, None
    # Its own stream: the limits are the same whatever was drawn before.
    times = np.random.default_rng(len(size)).multinomial(len(prompts), np.full(len(prompts), 1 / len(prompts)), _DRAWS)
    draws = np.abs(sums[:, prompts] @ times.T).sum(axis=0) / (times @ size[prompts])
    factor = small_sample_factor(len(prompts))
    high, low = (factor * (float(np.quantile(draws, q)) - error) for q in (0.975, 0.025))
    return max(0.0, error - high), max(0.0, error - low)


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram's points.

    Parameters
    ----------
    forecast : float array [B]
        Mean probability in each bin that holds any.
    observed : Interval, arrays [B]
        Share of it that was right, with 95 % limits clustered by prompt.
    """

    forecast: FloatArray
    observed: Interval


def reliability(
    scored: Scored, generator: np.random.Generator, bins: int = BINS, n_resamples: int = 1000
) -> Reliability:
    """Compare probabilities with what happened, in `bins` of equal mass at most; whole prompts are resampled.

    Limits are nan with fewer than two prompts.
    """
    prompts = int(scored.prompt.max()) + 1
    where = bin_by_mass(scored.probability, bins)
    cell = where * prompts + scored.prompt
    right, count = (
        np.bincount(cell, weights=weights, minlength=bins * prompts).reshape(bins, prompts)
        for weights in (scored.right, np.ones(len(cell)))
    )
    some = count.sum(axis=1) > 0
    right, count = right[some], count[some]
    forecast = np.bincount(where, weights=scored.probability, minlength=bins)[some] / count.sum(axis=1)
    observed = right.sum(axis=1) / count.sum(axis=1)
    if prompts < 2:
        return Reliability(forecast, Interval.unknown(observed))
    draws = resample_ratios(right.T, count.T, right.size * 2, generator, n_resamples)
    factors = np.array([small_sample_factor(n) for n in (count > 0).sum(axis=1)])
    low, high = stretch(observed, draws, factors)
    return Reliability(forecast, Interval(observed, np.clip(low, 0, 1), np.clip(high, 0, 1)))
