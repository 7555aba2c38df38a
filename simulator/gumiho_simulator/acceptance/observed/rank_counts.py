"""How often the true token was the drafter's r-th candidate, by prompt and depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_simulator.acceptance.observed.counts import freeze
from gumiho_theory import InputError, Trace
from gumiho_theory.logs.schema import group_codes
from gumiho_theory.types import IntArray

MAX_RANKS = 32
_MAX_DEPTH = 512


@dataclass(frozen=True, eq=False)
class RankCounts:
    """Ranks of the true token of G prompts at the positions that were at risk and ranked.

    `at_risk` [G, D] counts the cycles that reached the depth and whose candidates there were ranked, `hits` [G, D, R]
    those of them in which the true token had rank r = 1..R.
    """

    prompts: tuple[str, ...]
    at_risk: IntArray
    hits: IntArray

    def __post_init__(self) -> None:
        freeze(self, "at_risk", "hits")

    @classmethod
    def of(cls, trace: Trace) -> RankCounts | None:
        """Count the ranks of a trace; None where it has none at depth 1.

        Depths stop at the first that no cycle reached; ranks beyond 32 count as not among the candidates.
        """
        if "rank" in trace.missing or not trace.depth:
            return None
        # A position whose candidates were not ranked (behind a leaf of the tree) has no q_draft either.
        seen = trace.at_risk() & ((trace.rank > 0) | ~np.isnan(trace.q_draft))
        depth = int(np.argmin(np.append(seen.sum(axis=0), 0) > 0))
        if not depth:
            return None
        prompt, count = group_codes(trace.prompt_id), len(trace.prompts)
        ranks = min(int(trace.rank.max()), MAX_RANKS) or 1
        at_risk = np.zeros((count, depth), dtype=np.int64)
        hits = np.zeros((count, depth, ranks), dtype=np.int64)
        for i in range(depth):
            np.add.at(at_risk[:, i], prompt, seen[:, i])
            hit = seen[:, i] & (trace.rank[:, i] > 0) & (trace.rank[:, i] <= ranks)
            np.add.at(hits[:, i], (prompt[hit], trace.rank[hit, i] - 1), 1)
        return cls(trace.prompts, at_risk, hits)

    def select(self, prompts: Sequence[str]) -> RankCounts:
        """Return the counts of some prompts, in the order asked for; each must occur."""
        place = {prompt: index for index, prompt in enumerate(self.prompts)}
        index = np.array([place[prompt] for prompt in prompts], dtype=np.int64)
        return RankCounts(tuple(prompts), self.at_risk[index], self.hits[index])

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON values; prompts are those of the counts beside them."""
        return {"at_risk": self.at_risk.tolist(), "hits": self.hits.tolist()}

    @classmethod
    def from_json(cls, data: Any, prompts: tuple[str, ...]) -> RankCounts:
        """Read what `to_json` returned; InputError for other shapes, or hits that exceed the cycles at risk."""
        if not isinstance(data, dict):
            raise InputError("ranks", type(data).__name__, "an object with at_risk and hits")
        at_risk = _integers(data.get("at_risk"), "at_risk", 2)
        hits = _integers(data.get("hits"), "hits", 3)
        if hits.shape[:2] != at_risk.shape or len(at_risk) != len(prompts):
            wanted = f"{len(prompts)} prompts, the same depths in both"
            raise InputError("ranks", f"shapes {at_risk.shape} and {hits.shape}", wanted)
        if not 1 <= at_risk.shape[1] <= _MAX_DEPTH or not 1 <= hits.shape[2] <= MAX_RANKS:
            raise InputError("ranks, hits", f"shape {hits.shape}", f"up to {_MAX_DEPTH} depths of {MAX_RANKS} ranks")
        if (hits < 0).any() or (hits.sum(axis=2) > at_risk).any() or not at_risk.sum(axis=0).all():
            raise InputError("ranks, hits", "more than were at risk, or depths never reached", "counts of a trace")
        return cls(prompts, at_risk, hits)


def _integers(value: Any, name: str, ndim: int) -> IntArray:
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        raise InputError(f"ranks, {name}", "a ragged list or a number too large", "whole numbers") from None
    if array.ndim != ndim or array.dtype.kind not in "iu":
        raise InputError(f"ranks, {name}", f"{array.ndim}-dimensional {array.dtype}", f"{ndim}-dimensional integers")
    return array.astype(np.int64)
