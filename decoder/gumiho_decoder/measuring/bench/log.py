"""The log of one row: its trace, with the turns and their times in the provenance; taken up again later."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from gumiho_decoder.measuring.bench.contenders import Turn
from gumiho_decoder.measuring.lossless import VERDICTS
from gumiho_theory import InputError, Trace

KEY = "bench"
_NAME = 100  # characters of a file's name that say what is in it


@dataclass
class RowLog:
    """What one row has been measured by so far.

    Attributes
    ----------
    provenance : dict
        Of the trace.
    request : str
        Digest of all that the result depends on.
    path : Path or None
        Where it is kept, if anywhere.
    parts : list of Trace
        One a prompt, or what was taken up.
    turns : list of Turn
    written : tuple of int and bool
        Turns that are on disk, and whether they are called complete there.
    """

    provenance: dict[str, Any]
    request: str
    path: Path | None
    parts: list[Trace] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    written: tuple[int, bool] = (0, False)

    @property
    def prompts(self) -> set[str]:
        """Prompts that are done."""
        return {turn.prompt_id for turn in self.turns}

    def take_up(self) -> None:
        """Read what an earlier run of the same request has left, if anything.

        Raises InputError: A file is there that cannot be read, or whose turns are none.
        """
        if self.path is None or not self.path.exists():
            return
        trace = Trace.read(self.path)
        kept = trace.provenance.get(KEY)
        if not isinstance(kept, Mapping) or kept.get("request") != self.request:
            raise InputError(self.path, "another request's trace", "one of this request, or a folder of its own")
        try:
            self.turns = [_turn(values) for values in zip(*(kept["turns"][f.name] for f in fields(Turn)), strict=True)]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{self.path}, {KEY}, turns", repr(error), "equally long lists, as bench writes") from None
        self.parts, self.written = [trace], (len(self.turns), trace.provenance.get("complete") is True)

    def add(self, trace: Trace, turns: Sequence[Turn]) -> None:
        """Add one prompt."""
        self.parts.append(trace)
        self.turns.extend(turns)

    def trace(self, *, complete: bool) -> Trace:
        """Return the cycles so far, with everything known of them."""
        columns = {f.name: [getattr(turn, f.name) for turn in self.turns] for f in fields(Turn)}
        facts = self.provenance | {"complete": complete, KEY: {"request": self.request, "turns": columns}}
        return joined(self.parts, facts)

    def write(self, *, complete: bool) -> None:
        """Write the trace, if there is a place for it and anything new.

        Raises InputError: It cannot be written.
        """
        if self.path is not None and self.turns and (len(self.turns), complete) != self.written:
            self.trace(complete=complete).write(self.path)
            self.written = len(self.turns), complete


def joined(traces: Sequence[Trace], provenance: Mapping[str, Any]) -> Trace:
    """Return the cycles of traces of different prompts, one after another, as one trace."""
    width = max((trace.depth for trace in traces), default=0)
    some = [trace for trace in traces if trace.n_cycles]
    if not some:
        return Trace.from_rows([], provenance)

    def column(trace: Trace, name: str) -> Any:
        values = getattr(trace, name)
        if values.ndim == 1:
            return values
        null = 0 if name == "rank" else np.nan  # by depth, null behind the trace's own deepest
        return np.pad(values, ((0, 0), (0, width - trace.depth)), constant_values=null)

    names = [f.name for f in fields(Trace) if f.name not in ("provenance", "missing")]
    arrays = {name: np.concatenate([column(trace, name) for trace in some]) for name in names}
    return Trace(**arrays, provenance=dict(provenance))


def digest(*facts: Any) -> str:
    """Return a SHA-256 of JSON values; what is none of them counts as it prints."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def file_name(words: Sequence[str], request: str) -> str:
    """Return a name that any file system takes, different for each request."""
    said = re.sub(r"[^A-Za-z0-9.=_]+", "-", "-".join(words)).strip("-.")[:_NAME]
    return f"{said}-{request[:12]}.parquet"


def _turn(values: Sequence[Any]) -> Turn:
    made = Turn(*values)
    numbers = (made.tokens, made.seconds, made.plain_tokens, made.plain_seconds, made.library_tokens)
    for number in (*numbers, made.library_seconds):
        if isinstance(number, bool) or not isinstance(number, int | float) or number <= 0:
            raise ValueError(f"{number!r} where a count or a time above 0 is kept")
    if made.verdict not in (None, *VERDICTS):
        raise ValueError(f"verdict {made.verdict!r}")
    return made
