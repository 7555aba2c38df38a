"""The theorem on random cases, and E[L] on sampled cycles: what sampling says of the closed forms.

Gains are first taken in float64; every case whose gain could be negative, given the rounding, is taken again in
integers of any size, and only what is negative there counts as a violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gumiho_theory.errors import InputError
from gumiho_theory.rates import MAX_DEPTH, expected_accepted
from gumiho_theory.theorem.cases import Case, check_depth, generator, random_cases, rounding
from gumiho_theory.types import IntArray

_NUMBERS = 1 << 19  # drawn at a time


@dataclass(frozen=True)
class SampleReport:
    """What random cases say of the theorem.

    Attributes
    ----------
    depth, cases, seed, any_order
        The arguments of `sample_cases`.
    violations : int
        Cases that lose, by exact arithmetic.
    suspects : int
        Cases that float64 could not clear, every one of them taken again exactly.
    worst : Case or None
        The case of least gain among those where something moves; None when nothing moved anywhere.
    """

    depth: int
    cases: int
    seed: int
    any_order: bool
    violations: int
    suspects: int
    worst: Case | None

    def to_json(self) -> dict[str, Any]:
        """Return the report as one plain object."""
        return {**vars(self), "worst": None if self.worst is None else self.worst.to_json()}


@dataclass(frozen=True)
class SampledMean:
    """Mean accepted length of sampled cycles beside its expectation; no bonus token.

    Attributes
    ----------
    cycles : int
        Number of cycles drawn.
    mean : float
        Their mean accepted length.
    low, high : float
        Confidence bounds of E[L], within [0, D].
    expected : float
        The closed form E[L].
    confidence : float
        Least probability that the bounds hold E[L].
    """

    cycles: int
    mean: float
    low: float
    high: float
    expected: float
    confidence: float

    @property
    def inside(self) -> bool:
        """Whether the closed form lies within the bounds."""
        return self.low <= self.expected <= self.high


def sample_cases(depth: int, cases: int, seed: int, any_order: bool = False) -> SampleReport:
    """Try the theorem on random cases and count the violations exactly.

    Parameters
    ----------
    depth
        Number of draft positions D, 2..512.
    cases
        Number of random pairs, at least 1; memory does not grow with it.
    seed
        Seed of the draw, not negative: the same seed gives the same report.
    any_order
        Draw rates in any order, outside the hypothesis, where losses exist from D = 3 on.

    Raises
    ------
    InputError
        When `depth`, `cases` or `seed` is out of range.
    """
    check_depth(depth)
    if cases < 1:
        raise InputError("cases", cases, "at least 1")
    violations = suspects = 0
    worst: Case | None = None
    rng, rows = generator(seed), _NUMBERS // depth
    for start in range(0, cases, rows):
        sample = random_cases(depth, min(rows, cases - start), rng, any_order)
        gain = sample.gain()
        suspected: IntArray = np.flatnonzero(gain <= rounding(depth))
        suspects += len(suspected)
        violations += int((sample.exact_gain(suspected) < 0).sum())
        moved: IntArray = np.flatnonzero(sample.mass())
        if moved.size:
            least = sample.case(int(moved[np.argmin(gain[moved])]))
            worst = least if worst is None or least.gain < worst.gain else worst
    return SampleReport(depth, cases, seed, any_order, violations, suspects, worst)


def sample_cycles(rates: npt.ArrayLike, cycles: int, seed: int, confidence: float = 0.99) -> SampledMean:
    """Draw cycles position by position and compare their mean accepted length with E[L].

    The bounds are the empirical Bernstein bounds of Audibert, Munos and Szepesvari (2009), theorem 1: they hold at
    least with the stated probability for every number of cycles, with no appeal to normality.

    Parameters
    ----------
    rates : array_like [D]
        Conditional rates.
    cycles
        Number of cycles to draw, at least 1.
    seed
        Seed of the draw, not negative.
    confidence
        Probability, in (0, 1), that the bounds hold.

    Raises
    ------
    InputError
        When a rate or another argument is out of range.
    """
    expected = expected_accepted(rates)
    p = np.asarray(rates, dtype=np.float64)
    if p.ndim != 1 or p.size > MAX_DEPTH:
        raise InputError("rates", f"an array of shape {p.shape}", f"one rate a position, at most {MAX_DEPTH}")
    if cycles < 1:
        raise InputError("cycles", cycles, "at least 1")
    if not 0 < confidence < 1:
        raise InputError("confidence", confidence, "a probability above 0 and below 1")
    rng = generator(seed)
    counts: IntArray = np.zeros(p.size + 1, dtype=np.int64)
    rows = _NUMBERS // max(p.size, 1)
    for start in range(0, cycles, rows):
        accepted = rng.random((min(rows, cycles - start), p.size)) < p
        length = np.logical_and.accumulate(accepted, axis=1).sum(axis=1)
        counts += np.bincount(length, minlength=p.size + 1)
    lengths = np.arange(p.size + 1)
    mean = float(counts @ lengths) / cycles
    variance = float(counts @ (lengths - mean) ** 2) / cycles
    log = np.log(3 / (1 - confidence))
    width = float(np.sqrt(2 * variance * log / cycles) + 3 * p.size * log / cycles)
    low, high = max(mean - width, 0.0), min(mean + width, float(p.size))
    return SampledMean(cycles, mean, low, high, float(expected), confidence)
