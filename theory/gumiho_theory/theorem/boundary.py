r"""Where the theorem ends: counterexamples among rates in any order, and the moves that do harm.

Moving the amount z from position b to an earlier position a changes E[L] by z (B + C (p_b - p_a - z)), where neither B
nor C depends on p_a or p_b (they are written out in `gumiho_theory.theorem.certificate`). So with the threshold
T = B / C, a move does harm iff p_a + z - p_b > T. It follows that

- every move from b to a does harm iff p_a - p_b >= T;
- some move does, and then the largest, z = min(1 - p_a, p_b), iff p_a > T and p_b < 1 - T

(where there is something to move, and room for it). How much can be lost is said in `losses`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from gumiho_theory.errors import InputError
from gumiho_theory.rates import MAX_DEPTH, conditional_to_survival, gradient_terms
from gumiho_theory.theorem.cases import Case, Cases, generator, random_rates
from gumiho_theory.theorem.certificate import move_terms
from gumiho_theory.theorem.exact import to_rates
from gumiho_theory.types import FloatArray

# Two decimals make counterexamples readable.
_GRID = 100
_NUMBERS = 20_000  # rates drawn at a time

STATEMENTS = {
    "harmful move": r"E[L] \text{ falls} \iff p_a + \zeta - p_b > T = B / C",
    "every move harmful": r"p_a - p_b \ge T",
    "some move harmful": r"p_a > T \ \text{and}\ p_b < 1 - T",
    "first-order criterion": r"\frac{\partial E[L]}{\partial p_k} \ge \frac{\partial E[L]}{\partial p_{k+1}}"
    r" \iff (p_k - p_{k+1})\, W_{k+1} \le 1 \quad (P_{k-1} > 0)",
}
"""LaTeX of the criteria above."""


@dataclass(frozen=True)
class Counterexample(Case):
    """A change that meets all of the theorem but the order of the rates, and loses; see `Case`."""

    def to_json(self) -> dict[str, Any]:
        """Return the counterexample as one plain object."""
        return {"found": True, **super().to_json()}


@dataclass(frozen=True)
class MoveEffect:
    """What a move from one position to an earlier one does, as a function of the two rates alone.

    Attributes
    ----------
    source, destination : int
        Positions b and a, 1-based, a < b.
    direct, indirect : Fraction
        B and C: moving z changes E[L] by z (B + C (p_b - p_a - z)).
    """

    source: int
    destination: int
    direct: Fraction
    indirect: Fraction

    @property
    def threshold(self) -> Fraction | None:
        """T = B / C, what p_a + z - p_b must exceed to do harm; None when C = 0, where nothing does."""
        return self.direct / self.indirect if self.indirect else None

    def change(self, p_a: npt.ArrayLike, p_b: npt.ArrayLike, amount: npt.ArrayLike | None = None) -> FloatArray:
        """Return the change of E[L], no bonus token, in float64.

        Parameters
        ----------
        p_a, p_b : array_like
            Conditional rates at the destination and at the source, before the move; broadcast.
        amount : array_like, optional
            How much is moved; by default as much as fits, min(1 - p_a, p_b).
        """
        a, b = np.asarray(p_a, dtype=np.float64), np.asarray(p_b, dtype=np.float64)
        moved = np.minimum(1 - a, b) if amount is None else np.asarray(amount, dtype=np.float64)
        change: FloatArray = moved * (float(self.direct) + float(self.indirect) * (b - a - moved))
        return change


def move_effect(rates: Any, source: int, destination: int) -> MoveEffect:
    """Return what a move between two positions does, exactly, for every pair of rates they might have.

    Parameters
    ----------
    rates : str or iterable [D]
        Conditional rates, in any form that `gumiho_theory.theorem.exact.to_exact` reads; those at the two positions
        are not used.
    source, destination : int
        Positions b and a, 1-based, a < b.

    Raises
    ------
    InputError
        When the rates are no rates, or the positions do not fit them.
    """
    return MoveEffect(source, destination, *move_terms(to_rates(rates, "rates"), source, destination))


def first_order_criterion(rates: npt.ArrayLike) -> FloatArray:
    """Return (p_k - p_{k+1}) W_{k+1} for neighbours k, k+1: the gradient of E[L] falls from k to k+1 iff it is <= 1.

    So a small move from k+1 to k gains where it is below 1 and loses where it is above. (Where an earlier rate is
    0, both derivatives are 0 and nothing matters.)

    Conditional rates [..., D] give a float array [..., D - 1]; what is no rate is refused as in `gumiho_theory.rates`.
    """
    conditional_to_survival(rates)  # refuses what is no rate
    p = np.asarray(rates, dtype=np.float64)
    criterion: FloatArray = (p[..., :-1] - p[..., 1:]) * gradient_terms(p)[1][..., 1:]
    return criterion


def counterexample(depth: int, seed: int) -> Counterexample | None:
    """Search for a change that loses when rates may stand in any order.

    Random rates are drawn in batches. In every row, each position in turn is given as much of the next one's rate
    as fits; the change that loses most is checked exactly and returned.

    For D = 2 there is none. The only move, from 2 to 1, has B = C = 1 and changes E[L] by z (1 + p_2 - p_1 - z). That
    is z times the sum of p_2 and the room that is left, 1 - p_1 - z; neither is negative.

    Parameters
    ----------
    depth
        Number of draft positions D, 1..512.
    seed
        Seed of the draw, not negative.

    Returns
    -------
    Counterexample or None
        Rates of two decimals; None for D <= 2. For D >= 3 there is one: see `gumiho_theory.theorem.losses`.

    Raises
    ------
    InputError
        When `depth` or `seed` is out of range.
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise InputError("depth", depth, f"1..{MAX_DEPTH} draft positions")
    rng = generator(seed)
    if depth <= 2:
        return None
    while True:
        # The draw may bring (3/4, 1/4, 1, ..., 1), which loses: the loop ends with probability 1. Often it runs once.
        original = random_rates(depth, _NUMBERS // depth, rng, _GRID)
        p = original / _GRID
        before, worth = gradient_terms(p)
        moved = np.minimum(1 - p[:, :-1], p[:, 1:])
        change = before[:, :-1] * moved * (1 + worth[:, 1:] * (p[:, 1:] - p[:, :-1] - moved))
        row, k = (int(i) for i in np.unravel_index(np.argmin(change), change.shape))
        improved = original[row].copy()
        amount = min(_GRID - improved[k], improved[k + 1])
        improved[k : k + 2] += amount, -amount
        case = Cases(original[row : row + 1], improved[None], np.array([k + 1]), _GRID).case(0)
        if case.gain < 0:
            return Counterexample(case.original, case.improved, case.early, case.gain)
