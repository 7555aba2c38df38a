"""Rank rates from a trace: how often the true token was the drafter's r-th candidate, by depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.logs.trace import Trace
from gumiho_theory.types import FloatArray, IntArray


@dataclass(frozen=True)
class RankRates:
    """Rates by depth and rank.

    Attributes
    ----------
    rates : float array [D, R]
        P(the true token has rank r at depth d | the path before it was accepted) at [d - 1, r - 1].
    at_risk : int array [D]
        Cycles that each row rests on: those that reached the depth and whose candidates there were ranked.
    """

    rates: FloatArray
    at_risk: IntArray


def rank_rates(trace: Trace, ranks: int = 10) -> RankRates:
    """Count ranks at the positions that were at risk.

    What is behind a path of ranks other than the trace's own structure's is taken to be as behind the paths
    that were accepted (path independence): an assumption, since a chain's deep positions are seen behind first
    candidates only. Depths stop at the first that no cycle reached.

    Parameters
    ----------
    trace : Trace
    ranks : int
        Ranks R told apart.

    Raises
    ------
    InputError
        The trace has no ranks, or none at depth 1.
    """
    if ranks < 1:
        raise InputError("ranks", ranks, "at least 1")
    if "rank" in trace.missing or not trace.depth:
        raise InputError("trace, column rank", "no ranks", "a trace that logs the true token's rank")
    # A position whose candidates were not ranked (behind a leaf of the tree) has no q_draft either.
    seen = trace.at_risk() & ((trace.rank > 0) | ~np.isnan(trace.q_draft))
    at_risk = seen.sum(axis=0)
    depth = int(np.argmin(np.append(at_risk, 0) > 0))
    if not depth:
        raise InputError("trace, column rank", "no ranks at depth 1", "a trace that logs the true token's rank")
    counts = np.stack([((trace.rank == r) & seen).sum(axis=0) for r in range(1, ranks + 1)], axis=1)
    rates: FloatArray = counts[:depth] / at_risk[:depth, None]
    return RankRates(rates, at_risk[:depth].astype(np.int64))
