"""Several files of one format as one log, groups kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gumiho_simulator.importers.reading.result import Reading
from gumiho_theory import AcceptanceCounts, InputError, Trace
from gumiho_theory.logs.columns import TRACE_SCHEMA
from gumiho_theory.types import AnyArray


def merge(readings: Sequence[Reading], paths: Sequence[str]) -> Reading:
    """Join readings; groups whose names occur in several files carry the file's name before their own.

    Readings and paths are in the same order. InputError for different formats, or one file named twice.
    """
    if len(readings) == 1:
        return readings[0]
    formats = {reading.format for reading in readings}
    if len(formats) > 1:
        raise InputError("files", f"formats {', '.join(sorted(formats))}", "files of one format")
    names = _file_names(paths)
    notes = [f"{name}: {note}" for name, reading in zip(names, readings, strict=True) for note in reading.warnings]
    every = [group for reading in readings for group in _groups(reading.log)]
    if len(set(every)) < len(every):
        renamed = [_renamed(reading.log, name) for reading, name in zip(readings, names, strict=True)]
        notes.append("groups of the same name in several files are kept apart: named after their files")
    else:
        renamed = [reading.log for reading in readings]
    traces = [log for log in renamed if isinstance(log, Trace)]
    if len(traces) == len(renamed):
        return Reading(readings[0].format, _traces(traces), tuple(notes))
    counted = [log.counts_by_prompt() if isinstance(log, Trace) else log for log in renamed]
    with_groups = [counts for counts in counted if counts.groups]
    if len({counts.has_positions for counts in with_groups}) > 1:
        notes.append("some files have counts by position and others none: positions left out")
    return Reading(readings[0].format, _counts(with_groups), tuple(notes))


def _file_names(paths: Sequence[str]) -> list[str]:
    if len({Path(path).resolve() for path in paths}) < len(paths):
        raise InputError("files", "one file twice", "different files")
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def _groups(log: Trace | AcceptanceCounts) -> tuple[str, ...]:
    return log.prompts if isinstance(log, Trace) else log.groups


def _renamed(log: Trace | AcceptanceCounts, name: str) -> Trace | AcceptanceCounts:
    if isinstance(log, Trace):
        columns = {column.name: getattr(log, column.name) for column in TRACE_SCHEMA.columns}
        columns["prompt_id"] = np.array([f"{name}: {prompt}" for prompt in log.prompt_id], dtype=object)
        return Trace(**columns, provenance=log.provenance, missing=log.missing)
    groups = tuple(f"{name}: {group}" for group in log.groups)
    return replace(log, groups=groups)


def _traces(traces: Sequence[Trace]) -> Trace:
    """Join traces; provenance and missing columns are those that all share."""
    depth = max(trace.depth for trace in traces)
    columns: dict[str, AnyArray] = {}
    for column in TRACE_SCHEMA.columns:
        parts = [getattr(trace, column.name) for trace in traces]
        if column.per_depth:
            null = np.nan if column.kind.startswith("float") else column.null
            parts = [np.pad(part, ((0, 0), (0, depth - part.shape[1])), constant_values=null) for part in parts]
        columns[column.name] = np.concatenate(parts)
    first = traces[0].provenance
    shared = {key: value for key, value in first.items() if all(trace.provenance.get(key) == value for trace in traces)}
    missing = tuple(name for name in traces[0].missing if all(name in trace.missing for trace in traces))
    return Trace(**columns, provenance=shared, missing=missing)


def _counts(logs: Sequence[AcceptanceCounts]) -> AcceptanceCounts:
    depth = max((log.depth for log in logs), default=0)

    def padded(values: AnyArray | None) -> AnyArray:
        assert values is not None
        return np.pad(values, ((0, 0), (0, depth - values.shape[1])))

    positions = bool(logs) and all(log.has_positions for log in logs)
    empty = [np.zeros(0, dtype=np.int64)]
    return AcceptanceCounts(
        tuple(group for log in logs for group in log.groups),
        np.concatenate([*empty, *(log.cycles for log in logs)]),
        np.concatenate([*empty, *(log.total_accepted for log in logs)]),
        np.concatenate([*empty, *(log.complete_cycles for log in logs)]),
        np.concatenate([padded(log.at_risk) for log in logs]) if positions else None,
        np.concatenate([padded(log.accepted) for log in logs]) if positions else None,
        logs[0].clusters if len({log.clusters for log in logs}) == 1 else "groups",
    )
