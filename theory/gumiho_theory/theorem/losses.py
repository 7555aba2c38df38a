r"""The most that can be lost when rates may stand in any order: how far the theorem fails without its hypothesis.

L(D) is the largest E_p[L] - E_q[L] over all D conditional rates p, q and d with p_i <= q_i for i <= d, q_i <= p_i
for i > d, and equal sums. Let n = D - d, P = p_1 ... p_d, A = sum_{k <= d} p_1 ... p_k, Z = sum_{i <= d} (1 - p_i) and

    F_d(p_1 ... p_d) = A - d + n P Z.

Theorem: L(D) is the largest F_d(p) over d = 1..D-1 and p in [0, 1]^d with Z <= 1. It is attained by
(p_1, ..., p_d, Z, 1, ..., 1) -> (1, ..., 1, 0, 1, ..., 1).

Proof. Take a pair that loses.

1. Add t to p_i and q_i, for one i <= d, from t = -p_i to t = 1 - q_i. The pair stays admissible, and its loss is affine
   in t. At t = -p_i the loss is (P_1 + ... + P_{i-1}) - E_q[L] <= 0, since q is at least p before i. So
   the loss does not fall up to t = 1 - q_i: let q_1 = ... = q_d = 1. Then Z is the mass moved, and E_q[L] = d + V'
   while E_p[L] = A + P V, where V and V' belong to the late blocks: V = p_{d+1} + p_{d+1} p_{d+2} + ...
2. A product of rates changes by no more than its rates do in sum, so V - V' <= n Z; and V' >= 0. Therefore
   P V - V' <= min(P V, n Z - (1 - P) V) <= P n Z: the first rises in V, the second falls, and they meet at V = n Z. And
   P V - V' <= P n, since V <= n. The loss is at most A - d + P n min(Z, 1).
3. Where Z > 1, raising rates until Z = 1 raises A and P, and with them the bound. QED

For d = 1 the maximum is (D-2)^2 / (4 (D-1)), at p_1 = D / (2 (D-1)). That is L(D) for every D up to 14. From D = 15
on it is less than L(D): two early positions lose more, and later three and more. (For D >= 17 the rates p_1 = p_2 = 2/3
suffice: they lose 8 (D-2) / 27 - 8/9.) In general, since the geometric mean of p_1, ..., p_d, Z is at most their
arithmetic mean, P Z <= (d/(d+1))^(d+1) < 1/e; and A <= d. So

    (D-2)^2 / (4 (D-1)) <= L(D) <= (D-1) / e,

and L(D) / D tends to 1/e: with d near sqrt(D) / 2, the rates p_i = d/(d+1) lose D/e - O(sqrt(D)).

Where F_d is largest: rates of 1 may stand first, as A is largest then, and what remains is F_{d-1} for D - 1, which is
no more than for D; with a rate of 0 nothing is lost; at Z = 1 every derivative is positive. So for some d the
maximum is a stationary point inside. With R_i = p_i ... p_d the derivatives vanish where

    p_d = Z + 1/n,    p_{i-1} = p_i + 1 / (n R_i),    and then    F_d = n P p_1 - d:

one unknown, p_d, which lies between 1/2 and 1 (Z >= 1 - p_d). `largest_loss` searches it by branch and bound in
integer interval arithmetic, rounded outwards: what it says it bounds is proved.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gumiho_theory.errors import InputError
from gumiho_theory.theorem.cases import Case, check_depth
from gumiho_theory.theorem.exact import expected_exact

# Fixed point: rates are multiples of 2^-64. The pair is rounded to six decimals, so that it can be typed in again.
_ONE = 1 << 64
_DECIMALS = 6
_TOLERANCE = Fraction(1, 10**9)

STATEMENTS = {
    "largest loss": r"L(D) = \max_{1 \le d < D}\ \max_{p \in [0, 1]^d,\ Z \le 1}"
    r"\ \sum_{k=1}^{d} p_1 \cdots p_k - d + (D - d)\, Z\, p_1 \cdots p_d, \quad Z = \sum_{i=1}^{d} (1 - p_i)",
    "largest loss, closed form": r"L(D) = \frac{(D - 2)^2}{4 (D - 1)} \quad (2 \le D \le 14)",
    "largest loss, bounds": r"\frac{(D - 2)^2}{4 (D - 1)} \le L(D) \le \frac{D - 1}{e},"
    r" \quad \lim_{D \to \infty} \frac{L(D)}{D} = \frac{1}{e}",
}
"""LaTeX of what is proved above."""


@dataclass(frozen=True)
class LargestLoss:
    """The largest loss in E[L] that a change of D rates in any order can make; no bonus token on either side.

    Attributes
    ----------
    depth : int
        Number of draft positions D.
    case : Case
        A change that loses `loss`: no other loses more, or more than 1e-9 more.
    bound : Fraction
        No admissible change loses more than this: proved.
    """

    depth: int
    case: Case
    bound: Fraction

    @property
    def loss(self) -> Fraction:
        """The loss that `case` attains."""
        return -self.case.gain

    @property
    def exact(self) -> bool:
        """Whether `loss` is L(D) itself, as for every D up to 14; otherwise L(D) lies between `loss` and `bound`."""
        return self.loss == self.bound

    def to_json(self) -> dict[str, Any]:
        """Return the result as one plain object."""
        return {
            "depth": self.depth,
            "loss": float(self.loss),
            "bound": float(self.bound),
            "exact": self.exact,
            "original": [float(rate) for rate in self.case.original],
            "improved": [float(rate) for rate in self.case.improved],
            "early": self.case.early,
        }


def one_early_loss(depth: int) -> Fraction:
    """Return the largest loss of D positions, 2..512, one of them early, (D-2)^2 / (4 (D-1)): L(D) for D <= 14."""
    check_depth(depth)
    return Fraction((depth - 2) ** 2, 4 * (depth - 1))


def losing_case(early_rates: tuple[Fraction, ...], depth: int) -> Case:
    """Return the change that loses most among those whose original rates begin with these.

    `early_rates` (tuple of Fraction [d]): p_1 ... p_d; what they lack of 1 adds up to Z <= 1. `depth`: Number of draft
    positions D, above d. Returns (p_1, ..., p_d, Z, 1, ..., 1) -> (1, ..., 1, 0, 1, ..., 1), which gains -F_d(p).
    Raises InputError: When Z is above 1.
    """
    early = len(early_rates)
    room = early - sum(early_rates, Fraction())
    if room > 1:
        raise InputError("early rates", f"{float(room)} left to 1 in all", "at most 1: one late rate gives it")
    rest = (Fraction(1),) * (depth - early - 1)
    original = (*early_rates, room, *rest)
    improved = (*[Fraction(1)] * early, Fraction(0), *rest)
    return Case(original, improved, early, expected_exact(improved) - expected_exact(original))


def largest_loss(depth: int) -> LargestLoss:
    """Find the largest possible loss for D positions, 2..512, with proof.

    It is exact where one early position loses most (D <= 14), otherwise within 1e-9. InputError for another depth.
    """
    check_depth(depth)
    best = losing_case((Fraction(depth, 2 * (depth - 1)),), depth)
    cells: list[tuple[int, int, int, int]] = []
    for early in range(2, depth):
        # P Z is at most (d/(d+1))^(d+1): a d that cannot win is not searched.
        if (depth - early) * Fraction(early, early + 1) ** (early + 1) > -best.gain:
            _push(cells, depth, early, _ONE // 2, _ONE)
    while cells:
        bound, early, low, high = cells[0]
        slack = Fraction() if best.early == 1 else _TOLERANCE
        if Fraction(-bound, _ONE) <= -best.gain + slack:
            break
        heapq.heappop(cells)
        middle = (low + high) // 2
        rates = _stationary(depth, early, middle / _ONE)
        if rates is not None and -(case := losing_case(rates, depth)).gain > -best.gain:
            best = case
        _push(cells, depth, early, low, middle)
        _push(cells, depth, early, middle, high)
    proved = -best.gain if best.early == 1 else -best.gain + _TOLERANCE
    return LargestLoss(depth, best, proved)


def _stationary(depth: int, early: int, last: float) -> tuple[Fraction, ...] | None:
    """Rates p_1 ... p_d that solve the recursion from p_d on, to six decimals; None where they are no candidates."""
    late = depth - early
    rates, rest = [last], last
    for _ in range(early - 1):
        rates.insert(0, rates[0] + 1 / (late * rest))
        rest *= rates[0]
    decimals = tuple(Fraction(round(rate * 10**_DECIMALS), 10**_DECIMALS) for rate in rates)
    return decimals if max(decimals) <= 1 and early - sum(decimals, Fraction()) <= 1 else None


def _push(cells: list[tuple[int, int, int, int]], depth: int, early: int, low: int, high: int) -> None:
    """Keep the interval [low, high] of p_d, in units of 2^-64, with what F_d is at most at a stationary point there."""
    late = depth - early
    rate = rest = total = (low, high)
    for _ in range(early - 1):
        # No rate is above 1, and so no R_i below 1/n either.
        least = max(rest[0], _ONE // late)
        rate = (rate[0] + _ONE * _ONE // (late * rest[1]), min(rate[1] - (-_ONE * _ONE // (late * least)), _ONE))
        if rate[0] > _ONE:
            return
        rest = (rest[0] * rate[0] // _ONE, -(-rest[1] * rate[1] // _ONE))
        total = (total[0] + rate[0], total[1] + rate[1])
    # p_d = Z + 1/n somewhere in the interval, or no stationary point there.
    needed = (early * _ONE - total[1] + _ONE // late, early * _ONE - total[0] - (-_ONE // late))
    if needed[0] <= high and low <= needed[1]:
        most = -(-late * rest[1] * rate[1] // _ONE) - early * _ONE
        heapq.heappush(cells, (-most, early, low, high))
