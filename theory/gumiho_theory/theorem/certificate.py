"""Certificates: a change of rates as moves from late to early, each with its exact gain; and their verifier.

Moving zeta from position b to a < b changes E[L] by zeta * (B + C * (p_b - p_a - zeta)), where, with
P_k = p_1 ... p_k and W_k = 1 + p_{k+1} + p_{k+1} p_{k+2} + ...,

    B = P_{a-1} * (1 + p_{a+1} + ... + p_{a+1} ... p_{b-1}),    C = P_{a-1} * p_{a+1} ... p_{b-1} * W_b.

So one move helps exactly when C * (p_a + zeta - p_b) <= B, whatever the order of the rates. E[L] counts accepted
draft tokens, no bonus. Functions of `original`, `improved` and `early` take what
`gumiho_theory.theorem.exact.Change.read` takes, and raise what it raises.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gumiho_theory.errors import InputError
from gumiho_theory.theorem.exact import Change, expected_exact, fraction_text, product, short


@dataclass(frozen=True)
class Move:
    """One move of acceptance probability.

    Attributes
    ----------
    source, destination : int
        Late position b that gives, early position a that takes; 1-based.
    amount : Fraction
        What is moved, above 0.
    gain : Fraction
        Change of E[L] that this move brings, after those before it.
    """

    source: int
    destination: int
    amount: Fraction
    gain: Fraction

    def to_json(self) -> dict[str, Any]:
        """Return the move with its amounts as fraction text."""
        amounts = {"amount": fraction_text(self.amount), "gain": fraction_text(self.gain)}
        return {"source": self.source, "destination": self.destination, **amounts}


@dataclass(frozen=True)
class Certificate:
    """Moves that lead from the original rates to the improved ones, in order.

    Attributes
    ----------
    moves : tuple of Move
        From the last position to the first; none when nothing changes.
    residual : Fraction
        What the sum of the improved rates has above that of the original ones, by float rounding: the moves lead
        to rates that lack (or exceed) the improved ones by just this. 0 for exact rates.
    """

    moves: tuple[Move, ...]
    residual: Fraction = Fraction()

    @property
    def gain(self) -> Fraction:
        """Sum of the moves' gains."""
        return sum((move.gain for move in self.moves), Fraction())

    @property
    def certified(self) -> bool:
        """Whether no move loses: then the change of E[L] is at least 0, shown move by move."""
        return not self.harmful

    @property
    def harmful(self) -> tuple[Move, ...]:
        """The moves that lose."""
        return tuple(move for move in self.moves if move.gain < 0)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the moves in order, amounts as fraction text."""
        return [move.to_json() for move in self.moves]


def move_terms(rates: Sequence[Fraction], source: int, destination: int) -> tuple[Fraction, Fraction]:
    """Return B and C: a move of zeta changes E[L] by zeta * (B + C * (p_b - p_a - zeta)).

    `rates` (sequence of Fraction [D]): Conditional rates before the move. `source`, `destination`: b and a, 1-based, 1
    <= a < b <= D. Returns neither negative. The move helps exactly when C * (p_a + zeta - p_b) <= B. Raises InputError:
    When the positions are not such.
    """
    if not 1 <= destination < source <= len(rates):
        wanted = f"positions 1 <= destination < source <= {len(rates)}"
        raise InputError("move", f"from {source} to {destination}", wanted)
    before = product(rates[: destination - 1])
    between = rates[destination : source - 1]
    # 1 + E[L] of a part of the rates is the sum of its leading products, the empty one included.
    b_term = before * (1 + expected_exact(between))
    c_term = before * product(between) * (1 + expected_exact(rates[source:]))
    return b_term, c_term


def move_gain(rates: Sequence[Fraction], source: int, destination: int, amount: Fraction) -> Fraction:
    """Return the change of E[L] when `amount` moves from position `source` to `destination` (see `move_terms`)."""
    b_term, c_term = move_terms(rates, source, destination)
    return amount * (b_term + c_term * (rates[source - 1] - rates[destination - 1] - amount))


def moves(original: Any, improved: Any, early: int) -> Certificate:
    """Decompose an admissible change into moves from late to early.

    Each late position, from D down to early + 1, gives what it loses to the early positions that still lack
    something, from `early` down to 1: at most D - 1 moves, whose gains sum to E_improved[L] - E_original[L] exactly
    when the residual is 0. Under the theorem's hypothesis no such move loses; without it the moves that do are there to
    be seen.
    """
    return decompose(Change.read(original, improved, early))


def decompose(change: Change) -> Certificate:
    """Return the certificate of a change that has been read; see `moves`."""
    rates = list(change.original)
    made: list[Move] = []
    destination = change.early
    for source in range(len(rates), change.early, -1):
        while rates[source - 1] > change.improved[source - 1] and destination > 0:
            spare = rates[source - 1] - change.improved[source - 1]
            amount = min(spare, change.improved[destination - 1] - rates[destination - 1])
            if amount:
                made.append(Move(source, destination, amount, move_gain(rates, source, destination, amount)))
                rates[source - 1] -= amount
                rates[destination - 1] += amount
            if rates[destination - 1] == change.improved[destination - 1]:
                destination -= 1
    return Certificate(tuple(made), change.residual)


def verify_certificate(original: Any, improved: Any, early: int, certificate: Certificate) -> bool:
    """Whether a certificate is right: no claim of it is taken on trust (see `certificate_faults`)."""
    return not certificate_faults(original, improved, early, certificate)


def certificate_faults(original: Any, improved: Any, early: int, certificate: Certificate) -> tuple[str, ...]:
    """Check a certificate by carrying out its moves and summing products, without the formula of a move.

    Returns tuple of str: What is wrong, none when the certificate is right: every move goes from a late position to an
    early one and leaves all rates in [0, 1]; its gain is the difference of E[L] = sum_i p_1 ... p_i after and before
    it; the last move arrives at the improved rates, or, where float rounding left a residual, at rates that differ from
    them by it in total. The gains then sum to the change of E[L].
    """
    change = Change.read(original, improved, early)
    rates = list(change.original)
    now = _closed_form(rates)
    faults: list[str] = []
    for number, move in enumerate(certificate.moves, start=1):
        if not 1 <= move.destination <= change.early < move.source <= len(rates):
            # What such a move would lead to says nothing about the rest.
            return (*faults, f"move {number}: from {move.source} to {move.destination} is not from late to early")
        if move.amount <= 0:
            faults.append(f"move {number}: amount {short(move.amount)} is not above 0")
        rates[move.source - 1] -= move.amount
        rates[move.destination - 1] += move.amount
        if not (0 <= rates[move.source - 1] <= 1 and 0 <= rates[move.destination - 1] <= 1):
            faults.append(f"move {number}: it leaves a rate outside [0, 1]")
        before, now = now, _closed_form(rates)
        if move.gain != now - before:
            faults.append(f"move {number}: its gain is {fraction_text(now - before)}, not {fraction_text(move.gain)}")
    lacking = [new - rate for new, rate in zip(change.improved, rates, strict=True)]
    if certificate.residual != change.residual:
        faults.append("the residual is not that of the rates' sums")
    # All that is lacking has one sign and sums to the residual; for exact rates, nothing is lacking.
    if sum(map(abs, lacking)) != abs(change.residual):
        faults.append("the moves do not arrive at the improved rates")
    return tuple(faults)


def _closed_form(rates: Sequence[Fraction]) -> Fraction:
    """E[L] written out, apart from what the certificate was made with."""
    return sum(itertools.accumulate(rates, operator.mul), Fraction())
