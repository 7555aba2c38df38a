"""Which draft position matters most, by a log: tau if the head of one position never erred, all else as logged.

No model and no independence is assumed: the text is known, so what a better head would have had accepted is counted,
cycle by cycle, with the later positions' own candidates behind it. The theorem's gradient says the same to first order
where positions are independent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gumiho_simulator.forecasting.results import Row, Rows
from gumiho_simulator.forecasting.sample_size import compare
from gumiho_simulator.replaying.cycles import replay_cycles
from gumiho_theory import ChainStructure, EveryPositionLog, InputError


@dataclass(frozen=True)
class PositionImportance(Row):
    """One draft position.

    Parameters
    ----------
    position
        From 1.
    tau
        If its first candidate were always the target's token (bonus included, micro, complete cycles).
    gain, lo, hi
        tau less that of the chain as logged, and its 95 % limits, prompts resampled, the same ones for both.
    per_error
        The gain over the share of cycles in which the position errs as logged; None where it never does.
    """

    position: int
    tau: float
    gain: float
    lo: float
    hi: float
    per_error: float | None


class Importance(Rows[PositionImportance]):
    """The draft positions of one chain: a tuple."""

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho importance --json`` prints: rows, a key a field, and tau_convention."""
        convention = "bonus included, micro, complete cycles; interval 95 %, prompts resampled"
        return {**super().to_json(), "tau_convention": convention}


def importance(log: EveryPositionLog, length: int | None = None, seed: int = 0) -> Importance:
    """Replay a chain, as deep as the log unless given, as if one head after another never erred.

    Raises
    ------
    InputError
        What cannot be replayed (see `replay_cycles`), or fewer than two prompts.
    """
    chain = ChainStructure(log.depth if length is None else length)
    cycles = replay_cycles(log, chain)
    counts = cycles.counts(log)
    if len(counts.groups) < 2:
        raise InputError("log, prompts", len(counts.groups), "at least 2, for an interval")
    whole = cycles.accepted[cycles.complete]
    rows = []
    for position in range(1, chain.length + 1):
        better = replay_cycles(never_wrong(log, position), chain).counts(log)
        found = compare(counts, better, seed)
        errs = float(np.mean(whole == position - 1)) if len(whole) else 0.0
        per_error = found.difference / errs if errs else None
        rows.append(PositionImportance(position, found.tau_b, found.difference, found.lo, found.hi, per_error))
    return Importance(rows)


def never_wrong(log: EveryPositionLog, position: int) -> EveryPositionLog:
    """Return the log as if the first candidate at a position (from 1) were always the text's token.

    Accepted lengths of structures, which this would change, are left out.
    """
    rank = log.rank.copy()
    column = rank[:, position - 1]
    column[column > 0] = 1
    nothing = np.zeros((log.n_rows, 0), dtype=np.int64)
    facts = {name: value for name, value in log.provenance.items() if name != "structures"}
    return replace(log, rank=rank, accepted=nothing, censored=nothing, provenance=facts)
