"""Where hidden states leave the theorem's conclusion standing and where they overturn it: exact examples.

In every one of them the hypothesis of the theorem holds in every state and fails for the pooled conditional rates.
`gumiho_theory.extensions.dependence` says which kind of change is safe, and proves it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from gumiho_theory.extensions.dependence import HiddenStates, Table, Vector

Kind = Literal["in every state", "pooled rates", "on average"]


@dataclass(frozen=True)
class DependenceExample:
    """Hidden states, a change that moves accuracy from late to early, and what becomes of E[L].

    Attributes
    ----------
    states : HiddenStates
    kind : {"in every state", "pooled rates", "on average"}
        What is changed: the rates of every state, by the same amounts; the pooled conditional rates, taken for those
        of an independent chain; or the rates of the states, so that the amounts sum to 0 on average only.
    amounts : tuple of Fraction [D], or such a tuple for each state
        What is added to the rates.
    early : int
        d, the number of early positions.
    says : str
        What it shows.
    """

    states: HiddenStates
    kind: Kind
    amounts: Vector | Table
    early: int
    says: str

    @property
    def gain(self) -> Fraction:
        """Change of E[L] (no bonus token)."""
        if self.kind == "pooled rates":
            independent = HiddenStates.mixture([1], [self.states.conditional()])
            return independent.shift(self.amounts).expected_accepted() - self.states.expected_accepted()
        return self.states.shift(self.amounts).expected_accepted() - self.states.expected_accepted()


def _move(amount: Fraction, depth: int) -> Vector:
    """Return what moving `amount` from position 2 to position 1 adds to each of `depth` rates."""
    return _amounts(amount, -amount, depth)


def _amounts(first: Fraction, second: Fraction, depth: int) -> Vector:
    return (first, second, *[Fraction(0)] * (depth - 2))


# One easy text in six: nearly everything is accepted there, a third elsewhere.
_SIXTH = HiddenStates.mixture("1/6, 5/6", [["19/20"] * 4, ["1/3"] * 4])
_FIFTH = HiddenStates.mixture("1/5, 4/5", [["4/5"] * 4, ["4/5", "1/5", 0, 0]])
_HALF = HiddenStates.mixture("1/2, 1/2", [["9/10"] * 3, ["1/5"] * 3])
_CERTAIN_HALF = HiddenStates.mixture("1/2, 1/2", ["1, 1, 1", ["1/5"] * 3])
_TENTH = HiddenStates.mixture("1/10, 9/10", ["1, 1, 1", "7/9, 0, 0"])
_ALTERNATING = HiddenStates.chain("1, 0", ["0, 1", "1, 0"], [["19/20"] * 3, ["1/10"] * 3])
_PERSISTENT = HiddenStates.chain("0, 1", ["19/20, 1/20", "1/4, 3/4"], [["9/10"] * 4, ["9/10", "1/10", "1/10", "1/10"]])
_NONE, _TWENTIETH = Fraction(0), Fraction(1, 20)

_EXAMPLES: tuple[tuple[HiddenStates, Kind, Vector | Table, str], ...] = (
    (
        _SIXTH,
        "in every state",
        _move(_TWENTIETH, 4),
        "a mixture: the pooled rates rise throughout, and the same shift in every state gains, as it must",
    ),
    (
        _SIXTH,
        "pooled rates",
        _move(_TWENTIETH, 4),
        "the same mixture and amounts, added to the pooled rates instead: that gains too, which no theorem promised",
    ),
    (
        _FIFTH,
        "in every state",
        _move(Fraction(1, 5), 4),
        "a mixture with pooled rates 0.8, 0.32, 0.4, 0.8: the shift in every state gains 0.05248, as it must gain",
    ),
    (
        _FIFTH,
        "pooled rates",
        _move(Fraction(1, 5), 4),
        "the same mixture and amounts, added to the pooled rates: that loses 0.03392, the opposite of what happens",
    ),
    (
        _SIXTH,
        "pooled rates",
        _move(_SIXTH.conditional()[1], 4),
        "one rate in each state, and all of pooled rate 2 given to position 1: that loses, at the least depth (4) at "
        "which such states can make it lose",
    ),
    (
        _TENTH,
        "pooled rates",
        _move(Fraction(1, 8), 3),
        "states with descending rates whose pooled rates are 4/5, 1/8, 1: a change of these loses, at the least depth "
        "(3) at which any rates do",
    ),
    (
        _HALF,
        "on average",
        (_amounts(_NONE, Fraction(-1, 10), 3), _amounts(Fraction(1, 10), _NONE, 3)),
        "what the easy half gives at position 2, the hard half takes at position 1: conserved on average, and it loses",
    ),
    (
        _CERTAIN_HALF,
        "on average",
        (_amounts(_NONE, Fraction(-1, 5), 3), _amounts(Fraction(1, 5), _NONE, 3)),
        "the easy half is always right and has no room for more at position 1: what it gives at position 2 goes to the "
        "hard half, and it loses",
    ),
    (
        _ALTERNATING,
        "in every state",
        _move(_TWENTIETH, 3),
        "a chain that alternates, each cycle begun in the easy state: the same shift in every state loses, although "
        "each state has one rate for all positions",
    ),
    (
        _PERSISTENT,
        "in every state",
        _move(Fraction(1, 10), 4),
        "a chain whose states persist, each cycle begun in the hard state, rates that descend in both: the same shift "
        "in every state loses",
    ),
    (
        replace(_PERSISTENT, start="5/6, 1/6"),  # type: ignore[arg-type]
        "in every state",
        _move(Fraction(1, 10), 4),
        "the same chain begun where it stays in the long run: the same shift gains, as it must into position 1",
    ),
)
EXAMPLES = tuple(DependenceExample(states, kind, amounts, 1, says) for states, kind, amounts, says in _EXAMPLES)
"""In order: a mixture under its three kinds of change, then chains."""
