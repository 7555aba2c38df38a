"""Which small exchange of rate between two draft positions gains most, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_theory.rates import gradient_terms
from gumiho_theory.types import FloatArray

STEP = 0.01
"""The amount of rate that a move between positions is tried with, where there is room for it."""

_CELLS = 4_000_000  # numbers of all pairs of positions held in memory at once


@dataclass(frozen=True)
class BestMove:
    """The exchange of a little rate between two positions that would gain most.

    Attributes
    ----------
    source, destination : int
        Positions that give and take, from 1; either may be the earlier.
    amount : float
        What is moved: `STEP`, or what there is room for.
    gain : float
        Change of E[L] (and of tau).
    probability : float or None
        Share of resampled logs in which the best move is from the same source to the same destination; None where
        nothing could be resampled.
    """

    source: int
    destination: int
    amount: float
    gain: float
    probability: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the move as JSON values."""
        return dict(vars(self))


def exchange_gains(rates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Amounts and gains [B, D, D] of moving `STEP`, or what there is room for, from position b to a at [:, b, a].

    E[L] is linear in each rate, so a move of z gains z (g_a - g_b) - z^2 h exactly, with g the gradient and h its mixed
    second derivative, P_{a-1} p_{a+1} ... p_{b-1} W_b for a < b. A position never reached (nan) counts as 0, which ends
    the sums.
    """
    p = np.nan_to_num(rates)
    before, after = gradient_terms(p)
    gradient = before * after
    mixed = np.zeros((*p.shape, p.shape[1]))
    for a in range(p.shape[1] - 1):
        between = np.cumprod(np.concatenate([before[:, a : a + 1], p[:, a + 1 : -1]], axis=1), axis=1)
        mixed[:, a, a + 1 :] = mixed[:, a + 1 :, a] = between * after[:, a + 1 :]
    amounts = np.minimum(np.minimum(p[:, :, None], 1 - p[:, None, :]), STEP)
    gains = amounts * (gradient[:, None, :] - gradient[:, :, None] - amounts * mixed)
    return amounts, gains


def best_move(rates: FloatArray, drawn: FloatArray) -> BestMove | None:
    """Return the exchange of `STEP` between two positions that gains most; None when none gains.

    `rates` (float array [D]): Conditional rates. `drawn` (float array [B, D]): Rates of resampled logs, nan where a
    position was not reached; B may be 0.
    """
    amounts, gains = exchange_gains(rates[None])
    best = int(gains[0].argmax())
    source, destination = divmod(best, len(rates))
    gain = float(gains[0, source, destination])
    if gain <= 0:
        return None
    batch = max(1, _CELLS // len(rates) ** 2)
    winners = [
        exchange_gains(part)[1].reshape(len(part), -1).argmax(axis=1)
        for part in (drawn[first : first + batch] for first in range(0, len(drawn), batch))
    ]
    probability = float((np.concatenate(winners) == best).mean()) if winners else None
    return BestMove(source + 1, destination + 1, float(amounts[0, source, destination]), gain, probability)
