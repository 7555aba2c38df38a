"""Cycles kept one by one while a log is read, and the trace that they make."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from gumiho_theory import Trace
from gumiho_theory.logs.columns import TRACE_SCHEMA
from gumiho_theory.logs.schema import column_shape, null_array

MAX_CELLS = 2**23  # cycles x deepest draft; a trace holds three such tables
_UNKNOWN = -1


class CycleRows:
    """Rows of a trace to be: prompt, turn, draft depth and accepted length of each cycle."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._tasks: list[str | None] = []
        self._turns: list[int] = []
        self._prompt, self._turn, self._drafted, self._accepted = (array("q") for _ in range(4))
        self.deepest = 0
        self.depth_unknown = False

    def add(self, name: str, task: str | None, accepted: Sequence[int], drafted: Sequence[int] | None) -> bool:
        """Keep the cycles of a prompt's next turn; False when they are too many to keep."""
        if not accepted:
            return True
        self.deepest = max(self.deepest, *(accepted if drafted is None else drafted))
        if (len(self._prompt) + len(accepted)) * max(self.deepest, 1) > MAX_CELLS:
            return False
        index = self._names.setdefault(name, len(self._names))
        if index == len(self._tasks):
            self._tasks.append(task)
            self._turns.append(0)
        self._prompt.extend([index] * len(accepted))
        self._turn.extend([self._turns[index]] * len(accepted))
        self._turns[index] += 1
        self._accepted.extend(accepted)
        self._drafted.extend([_UNKNOWN] * len(accepted) if drafted is None else drafted)
        self.depth_unknown = self.depth_unknown or drafted is None
        return True

    def trace(self, form: str) -> Trace:
        """Return the trace: every cycle complete, drafts taken for chains, times and ranks missing.

        Prompts' lengths are not in such logs: positions count from the start of each output.
        """
        prompt, turn, drafted, accepted = (
            np.array(column, dtype=np.int64) for column in (self._prompt, self._turn, self._drafted, self._accepted)
        )
        drafted = np.where(drafted == _UNKNOWN, self.deepest, drafted)
        new = np.ones(len(prompt), dtype=bool)
        new[1:] = (np.diff(prompt) != 0) | (np.diff(turn) != 0)
        start = np.flatnonzero(new)[np.cumsum(new) - 1]
        emitted = np.cumsum(accepted + 1) - (accepted + 1)
        tasks = np.array(self._tasks, dtype=object)[prompt]
        known = {
            "prompt_id": np.array(list(self._names), dtype=object)[prompt],
            "task": tasks,
            "turn": turn,
            "cycle": np.arange(len(prompt)) - start,
            "position": emitted - emitted[start],
            "drafted": drafted,
            "nodes": drafted + 1,
            "accepted": accepted,
            "committed": accepted + 1,
        }
        missing = [c.name for c in TRACE_SCHEMA.columns if c.name not in known]
        if all(task is None for task in self._tasks):
            missing.append("task")
        shapes = {c.name: column_shape(c, len(prompt), int(drafted.max(initial=0)), 0) for c in TRACE_SCHEMA.columns}
        nulls = {c.name: null_array(c, shapes[c.name]) for c in TRACE_SCHEMA.columns if c.name not in known}
        provenance = {
            "imported_from": form,
            "position": "from the start of each output",
            "drafted": "as logged" if not self.depth_unknown else "not logged: the longest accepted draft",
            "nodes": "drafted + 1",
        }
        return Trace(**known, **nulls, provenance=provenance, missing=tuple(missing))
