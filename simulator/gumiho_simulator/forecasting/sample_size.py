"""Which of two logs has the larger tau, how sure that is, and how many prompts would settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gumiho_simulator.forecasting.intervals import LEVEL, effective_prompts, resample, small_sample_factor, stretch
from gumiho_theory import AcceptanceCounts, InputError, Trace
from gumiho_theory.types import FloatArray, IntArray

POWER = 0.8


@dataclass(frozen=True)
class Comparison:
    """tau of two logs, B less A.

    Parameters
    ----------
    tau_a, tau_b, difference
        Bonus included, micro, over complete cycles, of the prompts compared.
    lo, hi, standard_error
        95 % limits of the difference, prompts resampled (the same ones for both logs where paired), and its standard
        error by the delta method.
    paired, prompts_a, prompts_b, dropped
        Whether both logs hold the same prompts, at least in part: then only shared ones are compared, and those with a
        complete cycle that only one log has are dropped. Prompts compared, equal numbers where paired.
    prompts_needed
        Prompts (of each log) at which a true difference as large as this one comes out different from 0 at 95 % with
        probability `power`; None where the difference is 0.
    prompts_needed_lo, prompts_needed_hi
        The same where the true difference is at the far and at the near end of its interval: 95 % limits, the upper one
        None, without bound, where the interval holds 0.
    clusters
        What is called prompts here: prompts, requests, ...; groups where the two logs differ.
    """

    tau_a: float
    tau_b: float
    difference: float
    lo: float
    hi: float
    paired: bool
    prompts_a: int
    prompts_b: int
    dropped: int
    standard_error: float
    prompts_needed: int | None
    prompts_needed_lo: int | None
    prompts_needed_hi: int | None
    clusters: str
    power: float = POWER

    @property
    def different(self) -> bool:
        """Whether the interval excludes 0."""
        return self.lo > 0 or self.hi < 0

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho compare --json`` prints: the fields but clusters, different, and tau_convention."""
        values = {name: value for name, value in vars(self).items() if name != "clusters"}
        convention = "bonus included, micro, complete cycles; interval 95 %, prompts resampled"
        return {**values, "different": self.different, "tau_convention": convention}


def compare(
    a: Trace | AcceptanceCounts, b: Trace | AcceptanceCounts, seed: int = 0, n_resamples: int = 4000
) -> Comparison:
    """Compare tau (bonus included, micro) of two logs, paired by prompt where they share any.

    tau is 1 + a ratio of sums over prompts. To first order a prompt with n cycles and x accepted tokens moves it by (x
    - (tau - 1) n) over the mean number of cycles; the variance of these contributions, of their differences where
    prompts are shared, over the number of prompts is that of the difference (delta method). A prompt that is easy for
    both logs then cancels, which is why paired comparisons need far fewer prompts.

    Raises
    ------
    InputError
        Fewer than two prompts with a complete cycle on either side.
    """
    counts = [log.counts_by_prompt() if isinstance(log, Trace) else log for log in (a, b)]
    first, second = (_prompts(one) for one in counts)
    shared = [prompt for prompt in first if prompt in second]
    paired = len(shared) > 1
    names = (shared, shared) if paired else (list(first), list(second))
    sides = [np.array([log[name] for name in some]) for log, some in zip((first, second), names, strict=True)]
    for place, side in zip("AB", sides, strict=True):
        if len(side) < 2:
            raise InputError(f"log {place}", f"{len(side)} prompts with a complete cycle", "at least two")
    taus = [1.0 + float(side[:, 0].sum() / side[:, 1].sum()) for side in sides]
    difference = taus[1] - taus[0]
    generator = np.random.default_rng(seed)
    low, high = _limits(sides, difference, paired, generator, n_resamples)
    moves = [_contributions(side) for side in sides]
    variances = [(moves[1] - moves[0]).var(ddof=1)] if paired else [part.var(ddof=1) for part in moves]
    error = math.sqrt(sum(var / len(part) for var, part in zip(variances, moves, strict=False)))
    variance = float(sum(variances))
    far, near = max(abs(low), abs(high)), 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    everyone = len(first.keys() | second.keys())
    return Comparison(
        tau_a=taus[0],
        tau_b=taus[1],
        difference=difference,
        lo=low,
        hi=high,
        paired=paired,
        prompts_a=len(sides[0]),
        prompts_b=len(sides[1]),
        dropped=everyone - len(shared) if paired else 0,
        standard_error=error,
        prompts_needed=prompts_needed(difference, variance),
        prompts_needed_lo=prompts_needed(far, variance),
        prompts_needed_hi=prompts_needed(near, variance),
        clusters=counts[0].clusters if counts[0].clusters == counts[1].clusters else "groups",
    )


def prompts_needed(difference: float, variance: float, power: float = POWER) -> int | None:
    """Return the number of prompts that tells a difference of tau from 0 at 95 % with probability `power`.

    By normal quantiles (z_0.975 + z_power)^2 variance / difference^2, rounded up, at least 2; None where the difference
    is 0. The variance is that of one prompt's contribution (of the difference of its two where paired, else their sum).
    """
    from scipy.stats import norm

    if difference == 0:
        return None
    quantiles = float(norm.ppf(0.5 + LEVEL / 2) + norm.ppf(power))
    return max(2, math.ceil(quantiles**2 * variance / difference**2))


def _prompts(counts: AcceptanceCounts) -> dict[str, tuple[float, float]]:
    """Return accepted tokens and complete cycles of each prompt that has any of these."""
    totals = zip(counts.groups, counts.total_accepted.tolist(), counts.complete_cycles.tolist(), strict=True)
    return {name: (accepted, cycles) for name, accepted, cycles in totals if cycles}


def _contributions(side: FloatArray) -> FloatArray:
    """How far each prompt moves the ratio, [G]; their mean is 0."""
    accepted, cycles = side.T
    moves: FloatArray = (accepted - accepted.sum() / cycles.sum() * cycles) / cycles.mean()
    return moves


def _limits(
    sides: list[FloatArray], difference: float, paired: bool, generator: np.random.Generator, n_resamples: int
) -> tuple[float, float]:
    def ratio(side: FloatArray, index: IntArray) -> FloatArray:
        sums = side[index].sum(axis=-2)
        result: FloatArray = sums[..., 0] / sums[..., 1]
        return result

    sizes, cells = [len(side) for side in sides], sum(side.size for side in sides)
    effective = [effective_prompts(side[:, 1]) for side in sides]
    if paired:
        draws = resample(
            lambda index: ratio(sides[1], index) - ratio(sides[0], index), sizes[0], cells, generator, n_resamples
        )
    else:
        apart = [
            resample(partial(ratio, side), size, cells, generator, n_resamples)
            for side, size in zip(sides, sizes, strict=True)
        ]
        draws = apart[1] - apart[0]
    low, high = stretch(np.array(difference), draws, small_sample_factor(min(effective)))
    return float(low), float(high)
