r"""Cycles as they really follow one another: where each begins depends on what the one before accepted.

A text of T tokens is to be produced (it is the target's, whatever the drafter does); a cycle that begins behind token t
drafts tokens t + 1, ..., t + D, accepts the first L of them, gets token t + L + 1 from the target, and the next begins
behind that. Token t drafted as position i is right with probability x_{t,i}, independently. Better drafts make fewer
cycles, but also let them begin elsewhere: the mean over cycles is not one over fixed contexts.

Theorem. If the difficulty belongs to the token alone, x_{t,i} = x_t, then on every text one more unit of rate, given to
all tokens drafted at position k, saves at least as many cycles as at k + 1: no order of difficulties, no stationarity,
no independence between tokens is assumed. So it holds for texts drawn from any process.

Proof. Let U(t) be the expected number of cycles from the one that begins behind t on (U(T) = 0), V_k(t) that of further
cycles once t has been accepted as position k of one, and s_k(t) = U(t) - V_k(t) >= 0 what its acceptance saves. Then
V_k(t) = U(t+1) - x_{t+1} s_{k+1}(t+1) for k < D, V_D(t) = U(t+1), U(t) = 1 + U(t+1) - x_{t+1} s_1(t+1), so that
s_k(t) = 1 + x_{t+1} (s_{k+1}(t+1) - s_1(t+1)) with s_{D+1} = 0. Backwards from T, 1 >= s_1 >= s_2 >= ... >= 0. Hence
s_k(t) >= 1 - s_1(t+1) + s_{k+1}(t+1) >= s_{k+1}(t+1). Let N_k(t) be the probability that token t is tried as position
k; a unit of rate at k saves sum_t N_k(t) s_k(t) cycles. And N_{k+1}(t+1) = N_k(t) x_t, so the same sum for k + 1 is
sum_t N_k(t) x_t s_{k+1}(t+1), which is not more.

Where the difficulty depends on the position too, it can fail even if x_{t,i} falls with i for every token:
`alternating_text` is an example, with D = 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.extensions.dependence import Table
from gumiho_theory.theorem.exact import to_rates
from gumiho_theory.types import IntArray

STATEMENTS = {
    "cycles of a text": r"x_{t,i} = x_t \ \Rightarrow\ "
    r"-\frac{\partial \mathbb{E}[\mathrm{cycles}]}{\partial \delta_k}"
    r" \geq -\frac{\partial \mathbb{E}[\mathrm{cycles}]}{\partial \delta_{k+1}}",
}
"""LaTeX of the statement."""


def token_rates(difficulty: Any, depth: int) -> Table:
    """Return rates [T][D] that belong to the token alone: x_{t,i} = x_t.

    Raises InputError: When a rate is not a number in [0, 1], or `depth` is below 1.
    """
    if depth < 1:
        raise InputError("depth", depth, "at least 1")
    return tuple((x,) * depth for x in to_rates(difficulty, "difficulty"))


def _read(rates: Sequence[Any]) -> Table:
    table = tuple(to_rates(row, f"rates, token {t}") for t, row in enumerate(rates, start=1))
    if not table or len({len(row) for row in table}) != 1:
        raise InputError("rates", f"rows of {[len(row) for row in table]}", "at least one token, rows of equal length")
    return table


def _remaining(rates: Table) -> tuple[list[Fraction], list[list[Fraction]]]:
    """U(t) at [t], t = 0..T, and V_k(t) at [t][k - 1], k = 1..D; see the module."""
    length, depth = len(rates), len(rates[0])
    after = [Fraction(0)] * (length + 1)
    accepted = [[Fraction(0)] * depth for _ in range(length + 1)]
    for t in range(length - 1, -1, -1):
        # Token t + 1 is next: as position k + 1 of the running cycle it is right, or else begins another.
        tried = [x * v + (1 - x) * after[t + 1] for x, v in zip(rates[t], accepted[t + 1], strict=True)]
        after[t] = 1 + tried[0]
        accepted[t] = [*tried[1:], after[t + 1]]
    return after, accepted


def expected_cycles(rates: Sequence[Any]) -> Fraction:
    """Return the expected number of cycles that a text takes; T over it is its tau (bonus included, micro).

    Parameters
    ----------
    rates : sequence [T] of str or iterable [D]
        x_{t,i}, the probability that token t is right when drafted as position i. The last cycle may draft beyond the
        text; it still counts as one.

    Raises
    ------
    InputError
        When a rate is not a number in [0, 1], or the rows differ in length.
    """
    return _remaining(_read(rates))[0][0]


def cycles_saved(rates: Sequence[Any]) -> tuple[Fraction, ...]:
    """Return the worth of each position: minus the derivative of `expected_cycles` in a shift of its rates, [D].

    The shift is the same for all tokens, sum_t N_k(t) (U(t) - V_k(t)); see `expected_cycles` for the parameter.
    """
    table = _read(rates)
    length, depth = len(table), len(table[0])
    after, accepted = _remaining(table)
    saved = [Fraction(0)] * depth
    begins = [Fraction(1)] + [Fraction(0)] * length
    tried = [Fraction(0)] * depth
    for t in range(1, length + 1):
        # What has been accepted as position k goes on to k + 1; a cycle that begins behind t - 1 tries t first.
        tried = [begins[t - 1], *tried[:-1]]
        row = table[t - 1]
        for k in range(depth):
            saved[k] += tried[k] * (after[t] - accepted[t][k])
            begins[t] += tried[k] * (1 - row[k])
        tried = [n * x for n, x in zip(tried, row, strict=True)]
        # Behind a draft accepted in full comes the target's own token, and then the next cycle.
        if t < length:
            begins[t + 1] += tried[-1]
    return tuple(saved)


def sample_cycles(rates: Sequence[Any], texts: int, generator: np.random.Generator) -> IntArray:
    """Draw the number of cycles of independent drafts of a text, int [texts]; see `expected_cycles`."""
    if texts < 0:
        raise InputError("texts", texts, "at least 0")
    table = np.array(_read(rates), dtype=np.float64)
    length, depth = table.shape
    cycles = np.zeros(texts, dtype=np.int64)
    position = np.zeros(texts, dtype=np.int64)  # accepted drafts of the running cycle; 0 behind a token of the target
    for t in range(length):
        # A draft accepted in full has the target's own token behind it, right by itself.
        bonus = position == depth
        cycles += position == 0
        right = ~bonus & (generator.random(texts) < table[t][np.minimum(position, depth - 1)])
        position = np.where(right, position + 1, 0)
    return cycles


def alternating_text(length: int) -> tuple[Table, Table]:
    """Return rates [T][2] before and after a move of 1/100 from position 2 to position 1 that costs cycles.

    Two kinds of token alternate. Both are right at position 1 with 98/100; at position 2 one is with 9/10, the other
    with 1/10: the rates fall with the position for each. A cycle that has the worse kind at position 2 mostly accepts
    one draft, which makes the next one begin just like it; it takes a failure at position 1 or a success at 2 to leave
    that phase, and the move makes both rarer. So it loses in texts of 7 tokens and more (tried up to 60).
    """
    kinds = (("98/100", "9/10"), ("98/100", "1/10"))
    before = _read([kinds[t % 2] for t in range(length)])
    step = Fraction(1, 100)
    return before, tuple((first + step, second - step) for first, second in before)
