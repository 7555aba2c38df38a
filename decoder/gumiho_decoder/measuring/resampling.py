"""95 % limits of what is measured on prompts, whole prompts resampled: of any statistic of sums, of speedups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

RESAMPLES = 2000
LEVEL = 0.95
_NUMBERS = 4_000_000  # resampled numbers held in memory at once


def interval(
    sums: FloatArray, statistic: Callable[[FloatArray], FloatArray], weights: FloatArray
) -> tuple[float, float] | None:
    """Return the 95 % limits of a statistic of sums over prompts: whole prompts resampled.

    Percentile limits of few prompts are too narrow: they are stretched about the estimate by sqrt(n / (n - 1)) t / z,
    n being Kish's effective number of prompts. `gumiho traces show` does the same.

    `sums` (float array [G, K]): Of each prompt. `statistic`: From sums over prompts [B, K] to values [B]. `weights`
    (float array [G]): What a prompt counts. Returns tuple of float or None: None for a single prompt.
    """
    from scipy.stats import norm, t

    prompts = len(sums)
    if prompts < 2:
        return None
    generator = np.random.default_rng(0)
    batch = max(1, _NUMBERS // sums.size)
    draws = [
        statistic(sums[generator.integers(prompts, size=(min(batch, RESAMPLES - done), prompts))].sum(axis=1))
        for done in range(0, RESAMPLES, batch)
    ]
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(np.concatenate(draws), (tail, 1 - tail))
    estimate = float(statistic(sums.sum(axis=0, keepdims=True))[0])
    n = max(2.0, float(weights.sum()) ** 2 / float((weights**2).sum()))
    factor = float(np.sqrt(n / (n - 1)) * t.ppf(1 - tail, n - 1) / norm.ppf(1 - tail))
    return estimate + factor * (float(low) - estimate), estimate + factor * (float(high) - estimate)


def sums_by_prompt(prompts: Sequence[str], values: ArrayLike) -> FloatArray:
    """Sum rows of values (N, K) by the prompt of each: (G, K), prompts in order of first appearance."""
    place = {prompt: row for row, prompt in enumerate(dict.fromkeys(prompts))}
    rows = np.asarray(values, dtype=np.float64)
    sums = np.zeros((len(place), *rows.shape[1:]))
    np.add.at(sums, [place[prompt] for prompt in prompts], rows)
    return sums


def speedup_interval(sums: FloatArray) -> tuple[float, float] | None:
    """Return the 95 % limits of a speedup, never below 0; None for a single prompt.

    `sums` (float array [G, 4]): Of each prompt: tokens and seconds, and tokens and seconds of what they are compared
    with.
    """
    found = interval(sums, _speedup, sums[:, 1])
    return None if found is None else (max(0.0, found[0]), found[1])


def speedup(
    prompts: Sequence[str], sizes: Sequence[tuple[int, float, int, float]]
) -> tuple[float | None, tuple[float, float] | None]:
    """Return tokens a second over another's, and its 95 % limits: whole prompts resampled.

    Parameters
    ----------
    prompts : sequence of str
        Of each output.
    sizes : sequence of (tokens, seconds, other's tokens, other's seconds)

    Returns
    -------
    tuple
        None for no output; no limits for a single prompt.
    """
    if not sizes:
        return None, None
    sums = sums_by_prompt(prompts, sizes)
    return float(_speedup(sums.sum(axis=0))), speedup_interval(sums)


def _speedup(sums: FloatArray) -> FloatArray:
    """Return tokens a second over another's, of (…, 4) sums."""
    tokens, seconds, other_tokens, other_seconds = np.moveaxis(sums, -1, 0)
    ratio: FloatArray = (tokens / seconds) / (other_tokens / other_seconds)
    return ratio
