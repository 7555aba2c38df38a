r"""The theorem when acceptance depends on a hidden difficulty: one that a cycle shares, or that moves along it.

A state z_i stands behind each draft position; given the states, position i is accepted with rate p_i(z_i), and
independently. A mixture has one state for the whole cycle; a chain moves from position to position. What a log shows
are the pooled conditional rates p_i = m_i / m_{i-1}, m_i = P(L >= i). Easy states survive longer, so the pooled rates
can rise where the rates of every state are flat or fall: the hypothesis then fails for the pooled rates although it
holds in every state. Whether the conclusion, that E[L] does not fall, still holds depends on what change is meant:

1. The same shift in every state, p_i(z) + delta_i, or any change that is admissible in each state by itself.

   - Mixture: the conclusion holds, in full. E[L] is the average of the states' E[L], and each of them does not fall by
     the theorem. The pooled rates have no say.
   - Chain whose start is stationary (every text position begins a cycle equally often), with rates that descend in
     every state, p_i(z) >= p_{i+1}(z); any number of states, persistent or not: G_k = dE[L]/d delta_k never rises with
     k, and an exchange of any size from a later position into position 1 does not lose. (Exchanges between later
     positions: proved for small amounts only.) Proof: G_{k+1} = sum_{j > k} E[p_1(z_1) ... p_j(z_j) without factor
     k + 1]. Leave out p_1(z_1) <= 1, replace each p_i by p_{i-1} >= p_i, and move all states one position back,
     which stationarity allows: this is G_k but for its last term. Leaving out p_1 + zeta <= 1 instead bounds the
     exchange into position 1 in the same way.
   - Chain of two states that persist (P(e -> e) >= P(h -> e)), with one rate for each, p(e) >= p(h): G_k never rises
     with k, from every start. Proof: let b_k(z) = 1 + sum_z' A(z,z') p(z') b_{k+1}(z') be the worth behind position k;
     b_k >= b_{k+1}, and b_k(e) >= b_k(h) by induction. With b = b_{k+1} it is enough that for each z = z_k
     sum_z' A(z,z') (p(z) - p(z')) b(z') <= 1. That is plain for h. For e, sum_z' A(e,z') (1 - p(z')) b(z') =
     1 + (A b)(e) - b_k(e) <= 1, since (A b)(e) <= b(e) <= b_k(e); and p(e) <= 1.
   - Other chains: it can fail, from D = 3 on (`gumiho_theory.extensions.examples`).
2. The same amounts added to the pooled conditional rates, which then stand for an independent chain. The theorem does
   not apply, and the conclusion can fail: from D = 3 on for states with descending rates (D = 2 never fails, whatever
   the rates), from D = 4 on for states with one rate each. The pooled rates of those do not fall with i
   (m_{i-1} m_{i+1} >= m_i^2, Cauchy-Schwarz), and no change of three rates in non-descending order loses. For what
   moves from the last position never does, and with d = 1, E[L] is concave along every exchange between two positions,
   so that it is least at a corner of the set of changes: where they are possible, (p_1 + p_2, 0, p_3), (1, 0, s - 1),
   (1, p_1 + p_2 - 1, p_3), (1, s - 1, 0), (s, 0, 0) with s = p_1 + p_2 + p_3. The first two need p_1 <= 1/2, the third
   p_2 >= 1/2, and that makes them gain; in the last two E[L] = s, the most that it can be.
3. A shift that is conserved on average only (the states' shifts, weighted, sum to 0): it can fail, from D = 3 on,
   since what is taken from a late position of an easy state can be worth more than what a hard state gains early. A
   shift that stops at rate 1 in some states is of this kind.

Cycles that begin where the one before ended are the matter of `text_cycles`. Everything here is exact.
E[L] counts accepted draft tokens, no bonus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.theorem.check import Hypothesis, hypothesis_form
from gumiho_theory.theorem.exact import dot, expected_exact, to_exact, to_rates
from gumiho_theory.types import IntArray

Vector = tuple[Fraction, ...]
Table = tuple[Vector, ...]

STATEMENTS = {
    "pooled rates": r"p_i = \frac{m_i}{m_{i-1}}, \quad m_i = P(L \geq i) = \mathbb{E}[ p_1(z_1) \cdots p_i(z_i) ]",
    "mixture": r"\mathbb{E}[L] = \sum_z \pi_z \, \mathbb{E}_z[L]",
    "stationary chain": r"p_i(z) \geq p_{i+1}(z) \ \forall z"
    r" \ \Rightarrow\ \frac{\partial \mathbb{E}[L]}{\partial \delta_k}"
    r" \geq \frac{\partial \mathbb{E}[L]}{\partial \delta_{k+1}}",
}
"""LaTeX of the statements."""


@dataclass(frozen=True)
class HiddenStates:
    """Hidden states behind the positions of a cycle, S of them, D positions. Exact.

    Parameters
    ----------
    start : str or iterable [S]
        P(z_1 = z); sums to 1.
    transition : sequence [S] of str or iterable [S]
        P(z_{i+1} = z' | z_i = z) at [z][z']; each row sums to 1. The identity: a mixture.
    rates : sequence [S] of str or iterable [D]
        p_i(z) at [z][i - 1].

    Raises
    ------
    InputError
        When the shapes differ, a rate or probability is none, or probabilities do not sum to 1 exactly.
    """

    start: Vector
    transition: Table
    rates: Table

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", _distribution(self.start, "start"))
        rows = [_distribution(row, f"transition, state {z}") for z, row in enumerate(self.transition, start=1)]
        object.__setattr__(self, "transition", tuple(rows))
        rates = [to_rates(row, f"rates, state {z}") for z, row in enumerate(self.rates, start=1)]
        object.__setattr__(self, "rates", tuple(rates))
        for name, table, width in (("transition", rows, len(self.start)), ("rates", rates, len(rates[0]))):
            shape = [len(row) for row in table]
            if shape != [width] * len(self.start):
                raise InputError(name, f"rows of {shape}", f"{len(self.start)} rows, one a state, of equal length")

    @classmethod
    def mixture(cls, weights: Any, rates: Sequence[Any]) -> HiddenStates:
        """Return cycles that each have one state throughout, drawn with these weights."""
        size = len(rates)
        return cls(weights, tuple(tuple(Fraction(z == y) for y in range(size)) for z in range(size)), tuple(rates))

    @classmethod
    def chain(cls, start: Any, transition: Sequence[Any], rates: Sequence[Any]) -> HiddenStates:
        """Return cycles whose state moves from position to position; numbers in any form `to_exact` reads."""
        return cls(start, tuple(transition), tuple(rates))

    @property
    def depth(self) -> int:
        """Draft positions D."""
        return len(self.rates[0])

    @property
    def is_mixture(self) -> bool:
        """Whether the state stays the same throughout a cycle."""
        return all(row[z] == 1 for z, row in enumerate(self.transition))

    @property
    def is_stationary(self) -> bool:
        """Whether every position's state has the distribution of the first."""
        return self._step(self.start) == self.start

    def _step(self, mass: Sequence[Fraction]) -> Vector:
        return tuple(dot(mass, column) for column in zip(*self.transition, strict=True))

    def _reached(self) -> Table:
        """P(z_i = z, positions before i accepted) at [i - 1][z]."""
        masses = [self.start]
        for i in range(self.depth - 1):
            masses.append(self._step([m * row[i] for m, row in zip(masses[-1], self.rates, strict=True)]))
        return tuple(masses)

    def survival(self) -> Vector:
        """Survival rates m_i = P(L >= i), i = 1..D."""
        return tuple(map(dot, self._reached(), zip(*self.rates, strict=True)))

    def conditional(self) -> Vector:
        """Pooled conditional rates m_i / m_{i-1}: what a log of these cycles estimates.

        Raises
        ------
        InputError
            When a position cannot be reached, so that its rate is not defined.
        """
        before = (Fraction(1), *self.survival()[:-1])
        if 0 in before:
            raise InputError(f"survival, position {before.index(Fraction(0))}", 0, "above 0: later rates are undefined")
        return tuple(m / b for m, b in zip(self.survival(), before, strict=True))

    def expected_accepted(self) -> Fraction:
        """E[L], no bonus token."""
        return sum(self.survival(), Fraction())

    def sensitivity(self) -> Table:
        """Gradient dE[L] / dp_i(z) at [z][i - 1]; summed over z, that of a shift common to all states."""
        worth = [[Fraction(1)] * len(self.start)]
        for i in range(self.depth - 1, 0, -1):
            kept = [row[i] * w for row, w in zip(self.rates, worth[0], strict=True)]
            worth.insert(0, [1 + dot(row, kept) for row in self.transition])
        reached = self._reached()
        return tuple(tuple(reached[i][z] * worth[i][z] for i in range(self.depth)) for z in range(len(self.start)))

    def shift(self, amounts: Any) -> HiddenStates:
        """Return the states after a change of their rates.

        Parameters
        ----------
        amounts : str or iterable [D], or sequence [S] of such
            delta_i added in every state, or delta_i(z) at [z][i - 1].

        Raises
        ------
        InputError
            When the shapes differ or a rate leaves [0, 1].
        """
        table = self._amounts(amounts)
        rates = [[p + d for p, d in zip(row, shift, strict=True)] for row, shift in zip(self.rates, table, strict=True)]
        return replace(self, rates=tuple(map(tuple, rates)))

    def _amounts(self, amounts: Any) -> Table:
        listed = to_exact(amounts, "amounts") if isinstance(amounts, str) else tuple(amounts)
        nested = any(
            isinstance(row, list | tuple | np.ndarray) or (isinstance(row, str) and "," in row) for row in listed
        )
        rows = listed if nested else [listed] * len(self.start)
        table = tuple(to_exact(row, "amounts") for row in rows)
        if [len(row) for row in table] != [self.depth] * len(self.start):
            wanted = f"{self.depth} amounts, or {len(self.start)} rows of them"
            raise InputError("amounts", f"rows of {[len(row) for row in table]}", wanted)
        return table

    def sample(self, cycles: int, generator: np.random.Generator) -> IntArray:
        """Draw accepted lengths L (no bonus) of independent cycles, int [cycles]."""
        if cycles < 0:
            raise InputError("cycles", cycles, "at least 0")
        rates = np.array(self.rates, dtype=np.float64)
        onward = np.cumsum(np.array(self.transition, dtype=np.float64), axis=1)
        last = len(self.start) - 1
        state = np.searchsorted(
            np.cumsum(np.array(self.start, dtype=np.float64)), generator.random(cycles), side="right"
        )
        state, length, alive = np.minimum(state, last), np.zeros(cycles, dtype=np.int64), np.ones(cycles, dtype=bool)
        for i in range(self.depth):
            alive &= generator.random(cycles) < rates[state, i]
            length += alive
            state = np.minimum((generator.random(cycles)[:, None] >= onward[state]).sum(axis=1), last)
        return length


def _distribution(values: Any, name: str) -> Vector:
    weights = to_rates(values, name)
    if sum(weights) != 1:
        raise InputError(name, f"a sum of {float(sum(weights)):g}", "exactly 1")
    return weights


@dataclass(frozen=True)
class ShiftCheck:
    """What a shift of rates does behind hidden states, and what the pooled rates make one believe.

    Attributes
    ----------
    in_states : tuple of {"descending", "dominated"} or None [S]
        Form of the hypothesis that each state's rates satisfy.
    pooled : {"descending", "dominated"} or None
        Form that the pooled conditional rates satisfy.
    conserved : bool
        Whether the shift is admissible in each state by itself: early rates raised, late ones lowered by as much.
    conserved_on_average : bool
        Whether it is so for the states' rates weighted by how often a position has that state.
    guaranteed : bool
        Whether the theorem, applied in every state, says that E[L] does not fall: a mixture, the shift conserved and
        the hypothesis true in every state.
    gain : Fraction
        Change of E[L].
    pooled_gain : Fraction or None
        Change of E[L] of an independent chain with the pooled rates when the average shift is added to those instead;
        None where that leaves [0, 1].
    """

    in_states: tuple[Hypothesis | None, ...]
    pooled: Hypothesis | None
    conserved: bool
    conserved_on_average: bool
    guaranteed: bool
    gain: Fraction
    pooled_gain: Fraction | None


def check_shift(states: HiddenStates, amounts: Any, early: int) -> ShiftCheck:
    """Carry a shift of rates out in every state, and on the pooled rates, exactly.

    Parameters
    ----------
    states : HiddenStates
    amounts : str or iterable [D], or sequence [S] of such
        As `HiddenStates.shift` takes them.
    early : int
        d, the number of early positions, 1..D-1.

    Raises
    ------
    InputError
        When a state's rates leave [0, 1], a position cannot be reached, or `early` is outside 1..D-1.
    """
    table = states._amounts(amounts)
    shifted = states.shift(table)
    pooled = states.conditional()
    in_states = tuple(hypothesis_form(row, early)[0] for row in states.rates)
    weights = [states.start]
    for _ in range(states.depth - 1):
        weights.append(states._step(weights[-1]))
    average = list(map(dot, weights, zip(*table, strict=True)))
    conserved = all(_admissible(row, early) for row in table)
    after = [p + d for p, d in zip(pooled, average, strict=True)]
    possible = all(0 <= p <= 1 for p in after)
    return ShiftCheck(
        in_states=in_states,
        pooled=hypothesis_form(pooled, early)[0],
        conserved=conserved,
        conserved_on_average=_admissible(average, early),
        guaranteed=states.is_mixture and conserved and None not in in_states,
        gain=shifted.expected_accepted() - states.expected_accepted(),
        pooled_gain=expected_exact(after) - expected_exact(pooled) if possible else None,
    )


def _admissible(amounts: Sequence[Fraction], early: int) -> bool:
    return sum(amounts) == 0 and all(d >= 0 for d in amounts[:early]) and all(d <= 0 for d in amounts[early:])
