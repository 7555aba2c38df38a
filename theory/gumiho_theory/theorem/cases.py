"""Pairs of rates that move mass from late draft positions to early ones: exact, drawn at random, many at a time.

Rates are multiples of a grid and held as integers, so that the mass moved is conserved exactly and the order of rates
means what it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.rates import MAX_DEPTH, expected_accepted
from gumiho_theory.theorem.exact import fraction_text
from gumiho_theory.types import BoolArray, FloatArray, IntArray, ObjectArray

GRID = 1_000_000


@dataclass(frozen=True)
class Case:
    """One pair of conditional rates, exact.

    Attributes
    ----------
    original, improved : tuple of Fraction
        D conditional rates each; the first `early` are raised, the others lowered by as much in total.
    early : int
        Number of early positions d, 1..D-1.
    gain : Fraction
        E[L] of the improved rates less that of the original ones; no bonus token on either side.
    """

    original: tuple[Fraction, ...]
    improved: tuple[Fraction, ...]
    early: int
    gain: Fraction

    def to_json(self) -> dict[str, Any]:
        """Return the case as plain values: rates and gain as floats, and the gain as an exact fraction."""
        return {
            "original": [float(rate) for rate in self.original],
            "improved": [float(rate) for rate in self.improved],
            "early": self.early,
            "gain": float(self.gain),
            "gain_exact": fraction_text(self.gain),
        }


@dataclass(frozen=True)
class Cases:
    """N pairs of conditional rates on a grid, D positions each.

    Attributes
    ----------
    original, improved : int array [N, D]
        Rates in units of 1 / grid.
    early : int array [N]
        Number of early positions of each pair, 1..D-1.
    grid : int
        The denominator of every rate.
    """

    original: IntArray
    improved: IntArray
    early: IntArray
    grid: int

    def mass(self) -> FloatArray:
        """Return the rate moved from late to early positions, in all [N]."""
        return np.asarray(np.maximum(self.improved - self.original, 0).sum(axis=1) / self.grid, dtype=np.float64)

    def gain(self) -> FloatArray:
        """Return the gain in E[L] in float64 [N]; its error stays below `rounding(D)`."""
        before, after = (expected_accepted(rates / self.grid) for rates in (self.original, self.improved))
        return np.asarray(after - before)

    def exact_gain(self, rows: IntArray) -> ObjectArray:
        """Return the gains of some rows in units of grid^-D, as Python integers [len(rows)]."""
        gain: ObjectArray = self._scaled(self.improved[rows]) - self._scaled(self.original[rows])
        return gain

    def case(self, row: int) -> Case:
        """Return one row as an exact case."""
        depth = self.original.shape[1]
        gain = Fraction(self.exact_gain(np.array([row]))[0], self.grid**depth)
        original, improved = (
            tuple(Fraction(int(k), self.grid) for k in rates[row]) for rates in (self.original, self.improved)
        )
        return Case(original, improved, int(self.early[row]), gain)

    def _scaled(self, rates: IntArray) -> ObjectArray:
        # E[L] = p_1 (1 + p_2 (1 + ...)) from the last position on, every factor 1/grid left out.
        exact: ObjectArray = rates.astype(object)
        total: ObjectArray = np.zeros(len(rates), dtype=object)
        one = 1
        for k in range(rates.shape[1] - 1, -1, -1):
            total = exact[:, k] * (total + one)
            one *= self.grid
        return total


def rounding(depth: int) -> float:
    """Bound what a gain of E[L] of D positions, taken in float64, may be wrong by.

    A product of k rounded rates is off by at most 2k - 1 units of 2^-53, to first order; those of one E[L] make D^2,
    and its sums no more than that again. So two sides make 4 D^2, and twice that leaves room for higher orders.
    """
    return 8 * depth**2 * 2.0**-53


def random_rates(depth: int, cases: int, rng: np.random.Generator, grid: int = GRID) -> IntArray:
    """Draw rates in any order, int [cases, depth] in units of 1 / grid, of five kinds in equal shares.

    The kinds: uniform, near 0 or 1, high, on quarters (ties, zeros and ones), and all equal.
    """
    u = rng.random((cases, depth))
    kinds = [u, np.sin(np.pi / 2 * u) ** 2, 1 - u**3, np.floor(5 * u) / 4, np.broadcast_to(u[:, :1], u.shape)]
    rates: IntArray = np.rint(np.choose(rng.integers(0, len(kinds), (cases, 1)), kinds) * grid).astype(np.int64)
    return rates


def random_cases(depth: int, cases: int, rng: np.random.Generator, any_order: bool = False, grid: int = GRID) -> Cases:
    """Draw pairs of rates that move mass from late positions to early ones.

    A fifth of the pairs moves as much as fits. How mass is shared among positions leaves some of them empty and
    fills others, in a random order.

    Parameters
    ----------
    depth
        Number of draft positions D, 2..512.
    cases
        Number of pairs N.
    rng
        Source of randomness.
    any_order
        False: every pair meets the theorem's hypothesis, half of them the paper's (rates descending), half the wider
        one (late block descending and nowhere above the early block, which is in any order). True: any rates.
    grid
        Rates are multiples of 1 / grid.

    Raises
    ------
    InputError
        When `depth` is out of range: one position has nothing to give.
    """
    check_depth(depth)
    column = np.arange(depth)
    early: IntArray = rng.integers(1, depth, cases)
    is_early: BoolArray = column < early[:, None]
    original = random_rates(depth, cases, rng, grid)
    if not any_order:
        original = -np.sort(-original, axis=1)
        # Random keys below 1 shuffle the early block of every other row; whole numbers keep the rest as it stands.
        key = np.where(is_early & (np.arange(cases) % 2 == 1)[:, None], rng.random(original.shape), 1.0 + column)
        original = np.take_along_axis(original, np.argsort(key, axis=1), axis=1)
    room = np.where(is_early, grid - original, 0)
    stock = np.where(is_early, 0, original)
    most = np.minimum(room.sum(axis=1), stock.sum(axis=1))
    total: IntArray = np.rint(most * np.minimum(1.25 * rng.random(cases), 1.0)).astype(np.int64)
    return Cases(original, original + _spread(total, room, rng) - _spread(total, stock, rng), early, grid)


def generator(seed: int) -> np.random.Generator:
    """Return numpy's generator for a seed; InputError when it is negative."""
    if seed < 0:
        raise InputError("seed", seed, "a number that is not negative")
    return np.random.default_rng(seed)


def check_depth(depth: int) -> None:
    """Refuse, by InputError, a number of positions outside 2..512: with one there is no early and late part."""
    if not 2 <= depth <= MAX_DEPTH:
        raise InputError("depth", depth, f"2..{MAX_DEPTH} positions, an early and a late one at least")


def _spread(total: IntArray, capacity: IntArray, rng: np.random.Generator) -> IntArray:
    """Share out each row's total [N] among its positions [N, D], none above its capacity, in a random order."""
    order = np.argsort(rng.random(capacity.shape), axis=1)
    capacity = np.take_along_axis(capacity, order, axis=1)
    after = capacity.sum(axis=1)
    left = total.copy()
    given: IntArray = np.empty_like(capacity)
    for k in range(capacity.shape[1]):
        after = after - capacity[:, k]
        least = np.maximum(left - after, 0)
        most = np.minimum(capacity[:, k], left)
        # A sixth of the draws takes the least, and a sixth the most, so that corners are met.
        share = np.clip(1.5 * rng.random(len(total)) - 0.25, 0.0, 1.0)
        given[:, k] = least + np.rint((most - least) * share).astype(np.int64)
        left = left - given[:, k]
    spread: IntArray = np.empty_like(given)
    np.put_along_axis(spread, order, given, axis=1)
    return spread
