"""A log as read: cycles or counts, its format, and what was wrong with it on the way."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gumiho_theory import AcceptanceCounts, Trace
from gumiho_theory.files import write_json


@dataclass(frozen=True)
class Reading:
    """A log as read.

    Parameters
    ----------
    log
        Cycles where the log gives every one of them, else counts. All of them are complete: no format but this
        toolkit's own says where an output's end censors one.
    warnings
        What was left out, contradicted itself or had to be read one way of several; one sentence each.
    deepest
        Depth that drafts of unknown depth were taken for; None where every depth is known.
    """

    format: str
    log: Trace | AcceptanceCounts
    warnings: tuple[str, ...]
    deepest: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho traces import --json`` prints, but for the name of the file that it writes.

        Groups and cycles are numbers of them; `survival` is P(L >= i) by draft position, None where the log has none.
        """
        counts = self.log.counts_by_prompt() if isinstance(self.log, Trace) else self.log
        return {
            "format": self.format,
            "kind": "cycles" if isinstance(self.log, Trace) else "counts",
            "groups": len(counts.groups),
            "cycles": int(counts.cycles.sum()),
            "tau": counts.tau(),
            "tau_convention": "bonus included, micro",
            "survival": counts.survival().tolist() if counts.depth else None,
            "warnings": list(self.warnings),
        }

    def write(self, path: str | os.PathLike[str]) -> Reading:
        """Write the log, cycles as a trace (Parquet), counts as JSON; InputError where the file cannot be written.

        Returned with a warning more where the file's suffix says the other kind.
        """
        if isinstance(self.log, Trace):
            self.log.write(path)
            kind, suffix_fits = "trace (Parquet)", Path(path).suffix.lower() != ".json"
        else:
            write_json(path, self.log.to_json())
            kind, suffix_fits = "file of counts (JSON)", Path(path).suffix.lower() == ".json"
        note = () if suffix_fits else (f"{os.fspath(path)} is a {kind}",)
        return replace(self, warnings=(*self.warnings, *note))
