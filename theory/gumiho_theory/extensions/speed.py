r"""The theorem for speed instead of tau: what accuracy is worth when the positions cost differently.

A cycle takes C = fixed + c_1 + ... + c_D seconds and yields tau = 1 + E[L] tokens (bonus included); one step of plain
decoding takes t. So the speedup is S = t tau / C, and with g_i = d tau / d p_i (conditional rates p_i),

- accuracy at position i is worth w_i = g_i C / tau seconds of a cycle for each unit of rate: a change of p_i that costs
  kappa seconds a cycle for each unit raises the speed iff kappa < w_i. dS = (S / C) (w_i - kappa) dp_i.
- an exchange of the amount z from position b to a, priced kappa_b and kappa_a seconds for each unit, changes tau by the
  exact gain G of the move and C by z (kappa_a - kappa_b). It raises the speed iff G C > tau z (kappa_a - kappa_b): the
  break-even price difference is G C / (tau z), and w_a - w_b for a small exchange.
- a small budget of seconds is best spent where S rises most for each second, (S / C) (w_i / kappa_i - 1): at the
  largest g_i / kappa_i, and nowhere unless w_i > kappa_i for some i.

So where the theorem says that a move from late to early does not lower tau, it does not lower the speed either,
provided that the early accuracy is no dearer than the late. If it is dearer, the theorem alone decides nothing and the
break-even does.

Times are seconds a cycle. Numbers may be Fractions; floats are taken as the binary numbers they are. Functions take
`rates`, array_like [D], conditional, and `costs` of the same D positions: InputError says which rate is no number in
[0, 1], or that the costs are those of another number of positions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from gumiho_theory.errors import InputError
from gumiho_theory.profile import CostProfile
from gumiho_theory.rates import sensitivity
from gumiho_theory.rates import tau as tau_of
from gumiho_theory.theorem.certificate import move_gain
from gumiho_theory.theorem.exact import expected_exact, to_exact, to_rates
from gumiho_theory.types import FloatArray

STATEMENTS = {
    "speedup": r"S = \frac{t \, \tau}{C}, \quad C = C_0 + \sum_{i=1}^{D} c_i",
    "worth of accuracy": r"w_i = \frac{C}{\tau} \frac{\partial \tau}{\partial p_i}",
    "speed per unit of cost": r"\frac{dS}{\kappa_i \, dp_i} = \frac{S}{C} \left( \frac{w_i}{\kappa_i} - 1 \right)",
    "break-even of an exchange": r"\kappa_a - \kappa_b = \frac{C}{\tau} \cdot \frac{\Delta\tau}{\zeta}",
}
"""LaTeX of the statements."""


@dataclass(frozen=True)
class PositionCosts:
    """Seconds that a cycle spends, by draft position.

    Parameters
    ----------
    draft : str or iterable [D]
        c_i: what drafting position i adds, at least 0; 0 where a pass shared with an earlier position yields it.
    fixed : number
        The rest of a cycle: verification and bookkeeping, above 0.
    baseline : number
        t, one step of plain decoding, above 0.

    Raises
    ------
    InputError
        When a time is not such a number.
    """

    draft: tuple[Fraction, ...]
    fixed: Fraction
    baseline: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "draft", to_exact(self.draft, "draft seconds"))
        for name in ("fixed", "baseline"):
            object.__setattr__(self, name, to_exact([getattr(self, name)], f"{name} seconds")[0])
            if getattr(self, name) <= 0:
                raise InputError(f"{name} seconds", float(getattr(self, name)), "above 0")
        _check_not_negative(self.draft, "draft seconds")

    @classmethod
    def from_profile(cls, profile: CostProfile, depth: int, nodes: int) -> PositionCosts:
        """Read the costs off a measured profile: each position costs what drafting one deeper adds.

        Parameters
        ----------
        profile : CostProfile
        depth : int
            Draft positions D.
        nodes : int
            Tokens verified, root included.

        Raises
        ------
        InputError
            For a negative depth or nodes outside the measured range.
        """
        profile.draft_seconds(depth)  # refuses a negative depth
        times = [profile.draft_seconds(d) for d in range(depth + 1)]
        added = [after - before for before, after in itertools.pairwise(times)]
        fixed = profile.verify_at(nodes) + profile.other_seconds
        return cls(tuple(map(Fraction, added)), Fraction(fixed), Fraction(profile.baseline_seconds))

    @property
    def cycle(self) -> Fraction:
        """C, seconds of a cycle."""
        return self.fixed + sum(self.draft, Fraction())


def speedup(rates: npt.ArrayLike, costs: PositionCosts) -> float:
    """Speed relative to plain decoding, S = t tau / C (tau: bonus included)."""
    return float(tau_of(_fitting(rates, costs))) * float(costs.baseline / costs.cycle)


def speed_sensitivity(rates: npt.ArrayLike, costs: PositionCosts) -> FloatArray:
    """Gradient dS / dp_i = t g_i / C at unchanged costs, [D]."""
    return sensitivity(_fitting(rates, costs)) * float(costs.baseline / costs.cycle)


def worth_seconds(rates: npt.ArrayLike, costs: PositionCosts) -> FloatArray:
    """Return w_i = g_i C / tau [D]: the break-even price of accuracy, in seconds a cycle for each unit of rate.

    More accuracy at position i raises the speed iff a unit of it costs less.
    """
    p = _fitting(rates, costs)
    return sensitivity(p) * (float(costs.cycle) / float(tau_of(p)))


def speed_per_second(rates: npt.ArrayLike, costs: PositionCosts, prices: npt.ArrayLike) -> FloatArray:
    """Change of the speedup for each second a cycle spent on accuracy at position i, (S / C) (w_i / kappa_i - 1).

    `rates`, `costs`: As for `speedup`. `prices` (array_like [D]): kappa_i, seconds a cycle for each unit of rate, above
    0. Returns float array [D]: The largest is where the next small amount of time does most; negative where it slows
    down. Raises InputError: For a price that is not above 0 too.
    """
    kappa = np.array([float(price) for price in to_exact(prices, "prices")])
    if len(kappa) != len(costs.draft):
        raise InputError("prices", f"{len(kappa)} prices", f"{len(costs.draft)}, one a position")
    if (kappa <= 0).any():
        position = int((kappa <= 0).argmax())
        raise InputError(f"prices, position {position + 1}", kappa[position], "above 0")
    per_second: FloatArray = worth_seconds(rates, costs) / kappa - 1
    return per_second * (speedup(rates, costs) / float(costs.cycle))


def length_break_even(rates: npt.ArrayLike, costs: PositionCosts) -> FloatArray:
    """Seconds that position i may cost, as the last one of the draft, for the speed not to fall by drafting it.

    The fixed part of the costs is taken to be the same at every length.

    Returns float array [D]: m_i C_{i-1} / tau_{i-1}, with m_i the survival rate and C, tau those of the draft of i - 1
    positions.
    """
    survival = np.cumprod(_fitting(rates, costs))
    spent = float(costs.fixed) + np.cumsum([0.0, *map(float, costs.draft)])[:-1]
    earned = 1.0 + np.cumsum(np.concatenate([[0.0], survival]))[:-1]
    limits: FloatArray = survival * spent / earned
    return limits


@dataclass(frozen=True)
class Exchange:
    """One exchange of accuracy between two positions, and whether it is worth its cost; exact.

    Attributes
    ----------
    source, destination : int
        Positions that give and take, from 1.
    amount : Fraction
        zeta, above 0.
    tau_before, tau_after : Fraction
        Bonus included.
    cycle_before, cycle_after : Fraction
        Seconds of a cycle.
    break_even : Fraction
        The price difference kappa_destination - kappa_source, in seconds a cycle for each unit of rate, at which the
        speed stays what it is; negative when tau falls.
    """

    source: int
    destination: int
    amount: Fraction
    tau_before: Fraction
    tau_after: Fraction
    cycle_before: Fraction
    cycle_after: Fraction
    break_even: Fraction

    @property
    def speed_ratio(self) -> Fraction:
        """Speed after over speed before."""
        return (self.tau_after / self.cycle_after) / (self.tau_before / self.cycle_before)

    @property
    def worth_it(self) -> bool:
        """Whether the speed rises."""
        return self.speed_ratio > 1


def exchange(rates: Any, costs: PositionCosts, source: int, destination: int, amount: Any, prices: Any) -> Exchange:
    """Move accuracy from one position to another, at its price, and see whether the speed rises. Exact.

    Parameters
    ----------
    rates : str or iterable [D]
        Conditional rates in any form that `gumiho_theory.theorem.exact.to_exact` reads.
    costs : PositionCosts
        Of the same D positions, before the exchange.
    source, destination : int
        Positions from 1, distinct; either may be the earlier.
    amount : number
        zeta, above 0: what the rate at `source` loses and that at `destination` gains.
    prices : str or iterable [D]
        kappa_i: seconds a cycle for each unit of rate at position i, at least 0: what accuracy given up saves, and
        accuracy gained costs.

    Raises
    ------
    InputError
        When the numbers do not fit, a rate leaves [0, 1], or nothing would be left of a cycle.
    """
    p, kappa = to_rates(rates, "rates"), to_exact(prices, "prices")
    depth = len(costs.draft)
    for name, values in (("rates", p), ("prices", kappa)):
        if len(values) != depth:
            raise InputError(name, f"{len(values)} values", f"{depth}, one a position")
    _check_not_negative(kappa, "prices")
    if source == destination or not all(1 <= position <= depth for position in (source, destination)):
        raise InputError("source, destination", f"{source}, {destination}", f"two positions from 1 to {depth}")
    zeta = to_exact([amount], "amount")[0]
    room = min(p[source - 1], 1 - p[destination - 1])
    if not 0 < zeta <= room:
        raise InputError("amount", float(zeta), f"above 0, at most {float(room):g}")
    if destination < source:
        gain = move_gain(p, source, destination, zeta)
    else:
        # The way back of a move to the earlier position.
        moved = list(p)
        moved[source - 1] -= zeta
        moved[destination - 1] += zeta
        gain = -move_gain(moved, destination, source, zeta)
    before, seconds = 1 + expected_exact(p), costs.cycle
    after_seconds = seconds + zeta * (kappa[destination - 1] - kappa[source - 1])
    if after_seconds <= 0:
        raise InputError("prices", f"a cycle of {float(after_seconds):g} s after the exchange", "above 0")
    break_even = gain * seconds / (before * zeta)
    return Exchange(source, destination, zeta, before, before + gain, seconds, after_seconds, break_even)


def _check_not_negative(values: tuple[Fraction, ...], name: str) -> None:
    for position, value in enumerate(values, start=1):
        if value < 0:
            raise InputError(f"{name}, position {position}", float(value), "at least 0")


def _fitting(rates: npt.ArrayLike, costs: PositionCosts) -> FloatArray:
    # Exact rates are taken as well: what follows works in float64.
    p = np.array([float(rate) for rate in to_rates(rates, "rates")] if np.size(rates) else [], dtype=np.float64)
    if len(p) != len(costs.draft):
        raise InputError("rates", f"{len(p)} rates", f"{len(costs.draft)}, one a position of the costs")
    return p
