"""Plain rows, as a program writes them down, turned into the padded columns of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.logs.schema import Column, RowSchema
from gumiho_theory.types import AnyArray, IntArray


def arrays_from_rows(
    schema: RowSchema, rows: Iterable[Mapping[str, Any]], k: int = 0, structures: int = 0
) -> tuple[dict[str, AnyArray], tuple[str, ...]]:
    """Turn plain rows into padded arrays.

    `rows`: Python values, None for null; per-depth columns are lists of `drafted` values, or None. `k`: Width of the
    table columns. `structures`: Width of the columns of one value a structure. Returns arrays, dict of array: Padded
    with nulls to the deepest draft. Returns missing, tuple of str: Optional columns that no row has. Raises InputError:
    For unknown or missing columns and for values of the wrong type or length, naming row and column.
    """
    rows = list(rows)
    names = {column.name for column in schema.columns}
    for index, row in enumerate(rows):
        for name in row:
            if name not in names:
                raise InputError(f"row {index}", f"unknown column {name!r}", f"one of {', '.join(sorted(names))}")
        for column in schema.columns:
            if column.required and column.name not in row:
                raise InputError(f"row {index}", f"no column {column.name!r}", column.description)
    depth = schema.column("drafted")
    drafted: IntArray = np.array([_value(row["drafted"], depth, i) for i, row in enumerate(rows)], dtype=np.int64)
    arrays = schema.nulls(drafted, k, structures)
    for column in schema.columns:
        array = arrays[column.name]
        for index, row in enumerate(rows):
            value = row.get(column.name)
            if value is None and not column.required:
                continue
            if column.per_depth:
                _fill(array[index], value, int(drafted[index]), "as drafted", column, index)
            elif column.per_structure:
                _fill(array[index], value, structures, "one a structure", column, index)
            else:
                array[index] = _value(value, column, index)
    present = {name for row in rows for name in row}
    missing = tuple(c.name for c in schema.columns if rows and not c.required and c.name not in present)
    return arrays, missing


def _fill(out: AnyArray, value: Any, length: int, what: str, column: Column, row: int) -> None:
    """Put a list of `length` entries into the row's cells; where a cell holds k values, an entry is a list of them."""
    wanted = f"a list of {length} values ({what})"
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        raise InputError(f"row {row}, column {column.name}", repr(value), wanted)
    if len(value) != length:
        raise InputError(f"row {row}, column {column.name}", f"a list of {len(value)}", wanted)
    for index, entry in enumerate(value):
        if entry is None:
            continue
        if out.ndim == 2:
            _fill(out[index], entry, out.shape[1], "top_k", column, row)
        else:
            out[index] = _value(entry, column, row)


def _value(value: Any, column: Column, row: int) -> Any:
    place = f"row {row}, column {column.name}"
    if value is None:
        raise InputError(place, "null", column.description)
    if column.type == "string":
        if not isinstance(value, str):
            raise InputError(place, repr(value), "text")
        return value
    integer = column.type == "int"
    wanted_types = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    if isinstance(value, bool | np.bool_) or not isinstance(value, wanted_types):
        raise InputError(place, repr(value), "an integer" if integer else "a number")
    if not integer:
        return float(value)
    if not -(2**63) <= value < 2**63 or (not column.required and value == column.null):
        raise InputError(place, value, column.description if column.required else f"{column.description}, or null")
    return int(value)
