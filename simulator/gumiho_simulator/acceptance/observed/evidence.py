"""What a log shows, kept apart by prompt: counts always, order and ranks where the log has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumiho_simulator.acceptance.observed.cycle_log import CycleLog
from gumiho_simulator.acceptance.observed.rank_counts import RankCounts
from gumiho_theory import AcceptanceCounts, InputError, Trace

_WANTED = {
    "cycles": "a cycle trace: the order of the cycles is not in counts",
    "ranks": "a cycle trace that logs the true token's rank",
}


@dataclass(frozen=True)
class Observations:
    """What acceptance models are fitted to.

    Parameters
    ----------
    counts
        Cycles at risk and accepted by prompt and draft position.
    cycles
        Accepted lengths in order; None for a log without order.
    ranks
        Ranks of the true token by prompt and depth; None for a log without ranks.
    """

    counts: AcceptanceCounts
    cycles: CycleLog | None = None
    ranks: RankCounts | None = None

    @classmethod
    def of(cls, data: Trace | AcceptanceCounts) -> Observations:
        """Sum up a log; InputError for a trace of more cycles than their order can be kept of."""
        if isinstance(data, AcceptanceCounts):
            return cls(data)
        return cls(data.counts_by_prompt(), CycleLog.of(data), RankCounts.of(data))

    def need(self, model: str, parts: Sequence[str]) -> None:
        """Refuse a log that lacks a part, by an InputError that names the model and the log it needs."""
        for part in parts:
            if getattr(self, part) is None:
                raise InputError(f"log for the {model} model", f"no {part}", _WANTED[part])

    def has(self, parts: Sequence[str]) -> bool:
        """Whether the log has all of these parts."""
        return all(getattr(self, part) is not None for part in parts)

    def keep(self, parts: Sequence[str]) -> Observations:
        """Return the counts and these parts alone."""
        return Observations(self.counts, **{part: getattr(self, part) for part in parts})

    def select(self, prompts: Sequence[str]) -> Observations:
        """Return what the log shows of some prompts, in the order asked for.

        InputError where one does not occur or is asked for twice.
        """
        return Observations(
            self.counts.select(prompts),
            None if self.cycles is None else self.cycles.select(prompts),
            None if self.ranks is None else self.ranks.select(prompts),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the parts as JSON values, those that are absent left out."""
        parts: dict[str, Any] = {"counts": self.counts.to_json()}
        if self.cycles is not None:
            parts["cycles"] = self.cycles.to_json()
        if self.ranks is not None:
            parts["ranks"] = self.ranks.to_json()
        return parts

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Observations:
        """Read what `to_json` returned, among other keys; InputError for ill-formed or contradictory parts."""
        counts = value.get("counts")
        if not isinstance(counts, dict):
            raise InputError("counts", type(counts).__name__, "the counts of the fit")
        read = AcceptanceCounts.from_json(counts)
        cycles, ranks = value.get("cycles"), value.get("ranks")
        return cls(
            read,
            None if cycles is None else CycleLog.from_json(cycles, read.groups),
            None if ranks is None else RankCounts.from_json(ranks, read.groups),
        )
