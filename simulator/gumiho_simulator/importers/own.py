"""Files of this toolkit's own, told from others and read: cycle traces and acceptance counts."""

from __future__ import annotations

from gumiho_simulator.importers.reading.entries import Entry
from gumiho_simulator.importers.reading.result import Reading
from gumiho_theory import AcceptanceCounts, InputError, Trace
from gumiho_theory.files import read_json
from gumiho_theory.logs.counts import SCHEMA

_PARQUET = b"PAR1"

TRACE, COUNTS = "gumiho-trace", "gumiho-counts"


def is_trace(path: str) -> bool:
    """Whether a file begins as Parquet files do."""
    with open(path, "rb") as file:
        return file.read(len(_PARQUET)) == _PARQUET


def is_counts(entry: Entry) -> bool:
    """Whether an object is a file of acceptance counts."""
    schema = (entry.value or {}).get("schema")
    return isinstance(schema, str) and schema.startswith(f"{SCHEMA}/")


def read_own(path: str, form: str) -> Reading:
    """Read a cycle trace or acceptance counts; InputError where the file is no such one, or contradicts itself."""
    if form == TRACE:
        return Reading(form, Trace.read(path), ())
    data = read_json(path)
    try:
        return Reading(form, AcceptanceCounts.from_json(data), ())
    except InputError as error:
        raise error.within(path) from None
