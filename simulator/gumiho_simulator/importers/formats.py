"""Readers of the logs that people already hold, one file a format, all giving one convention.

A log becomes a cycle trace where it lists every cycle, else acceptance counts with its groups (engine,
prompt, interval, request) apart. Accepted lengths never include the bonus token and tau always does,
whatever the format prints. Formats are told apart by content, never by a file's name. Files of lines are
read a line at a time; whole JSON documents may have 64 MiB.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from gumiho_simulator.importers.engines import GptFast, LlamaCpp, Sglang, TensorRtLlm
from gumiho_simulator.importers.evaluations import (
    Answers,
    GumihoLog,
    Hass,
    SpecBench,
    SpecdecBench,
    SpecForge,
    Speculators,
)
from gumiho_simulator.importers.own import COUNTS, TRACE, is_counts, is_trace, read_own
from gumiho_simulator.importers.reading import Importer, LogFile, Malformed, Reading, Tally, merge
from gumiho_simulator.importers.vllm import VllmBench, VllmLog, VllmMetrics, VllmRequest
from gumiho_theory import InputError

_IMPORTERS: dict[str, type[Importer]] = {
    kind.name: kind
    for kind in (
        VllmMetrics,
        VllmLog,
        VllmRequest,
        VllmBench,
        Sglang,
        Answers,
        GumihoLog,
        SpecBench,
        Hass,
        SpecdecBench,
        SpecForge,
        TensorRtLlm,
        LlamaCpp,
        Speculators,
        GptFast,
    )
}
FORMATS = (TRACE, COUNTS, *_IMPORTERS)


def read(path: str | os.PathLike[str], form: str = "auto") -> Reading:
    """Read one log.

    Parameters
    ----------
    path
        A regular file.
    form
        Name of its format, one of `FORMATS`, or "auto": the one format that recognizes its content.

    Raises
    ------
    InputError
        The file cannot be read, is of no known format or of several, or holds nothing usable.
    """
    return _read(path, form, 0)


def _read(path: str | os.PathLike[str], form: str, deepest: int) -> Reading:
    """Read one log; drafts whose depth it does not tell are taken to be at least `deepest` deep."""
    if form not in ("auto", *FORMATS):
        raise InputError("--format", repr(form), ", ".join(FORMATS))
    file = LogFile.open(path)
    if form == "auto":
        form = _detect(file)
    if form in (TRACE, COUNTS):
        return read_own(file.path, form)
    importer = _IMPORTERS[form]()
    tally = Tally(file.path, file.unit, deepest, importer.clusters)
    for entry in file.entries():
        try:
            importer.add(entry, tally)
        except Malformed as problem:
            tally.bad(entry.number, str(problem))
    importer.finish(tally)
    return tally.finish(form)


def import_logs(logs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], form: str = "auto") -> Reading:
    """Read a log, or several of one format as one; see `read` and `merge`.

    Drafts whose depth is not logged are taken to be as deep as the longest accepted draft of all files, as in one file.
    """
    paths = [logs] if isinstance(logs, str | os.PathLike) else list(logs)
    readings = [read(path, form) for path in paths]
    deepest = max((reading.deepest or 0 for reading in readings), default=0)
    readings = [
        reading if reading.deepest in (None, deepest) else _read(path, reading.format, deepest)
        for path, reading in zip(paths, readings, strict=True)
    ]
    return merge(readings, [os.fspath(path) for path in paths])


def _detect(file: LogFile) -> str:
    """Return the format of the first entry that any format recognizes."""
    if is_trace(file.path):
        return TRACE
    for entry in file.entries():
        if is_counts(entry):
            return COUNTS
        found = [name for name, kind in _IMPORTERS.items() if kind.recognizes(entry)]
        if len(found) > 1:
            place = f"{file.path}, {file.unit} {entry.number}"
            raise InputError(place, f"entries of {' and '.join(found)}", "one of them named by --format")
        if found:
            return found[0]
    # Only the list of names, which just fits into a message.
    raise InputError(file.path, "content of no known format (--format names one)", ", ".join(FORMATS))
