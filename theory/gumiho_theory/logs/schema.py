"""Columns of the row files (cycle trace, every-position log) and building them from plain rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.files import check_schema
from gumiho_theory.rates import MAX_DEPTH
from gumiho_theory.types import AnyArray, BoolArray, IntArray, ObjectArray

Kind = Literal["string", "int", "float", "int_list", "float_list", "int_table", "float_table", "int_structures"]

MAX_ROWS = 50_000_000
# One padded per-depth array of int64 or float64 then stays within 2 GiB.
MAX_CELLS = 2**28


@dataclass(frozen=True)
class Column:
    """One column: `list` kinds hold a value per depth, `table` kinds a list of k, `structures` kinds one a structure.

    `null` is the in-memory stand-in of an optional integer's null (floats use nan, strings None);
    a required column has no nulls.
    """

    name: str
    kind: Kind
    unit: str
    description: str
    required: bool = False
    null: int = -1

    @property
    def per_depth(self) -> bool:
        """Whether the column holds one entry per drafted depth."""
        return self.kind.endswith(("_list", "_table"))

    @property
    def per_structure(self) -> bool:
        """Whether the column holds one entry per structure that the provenance names."""
        return self.kind.endswith("_structures")


@dataclass(frozen=True)
class RowSchema:
    """A named, versioned set of columns."""

    name: str
    major: int
    columns: tuple[Column, ...]

    @property
    def tag(self) -> str:
        """The schema's text in a file's metadata, such as ``gumiho.trace/1``."""
        return f"{self.name}/{self.major}"

    def column(self, name: str) -> Column:
        """Return the column of that name."""
        return next(column for column in self.columns if column.name == name)

    def check_missing(self, missing: Iterable[str]) -> tuple[str, ...]:
        """Return `missing` in the schema's order; only optional columns can be missing."""
        names = set(missing)
        optional = tuple(column.name for column in self.columns if not column.required)
        if not names <= set(optional):
            raise InputError("missing", sorted(names - set(optional)), "names of optional columns")
        return tuple(name for name in optional if name in names)

    def check_absent(self, missing: Iterable[str], data: object) -> None:
        """Refuse values in a column that counts as missing: writing `data` would lose them."""
        for column in map(self.column, missing):
            values = getattr(data, column.name)
            null = np.isnan(values) if column.kind.startswith("float") else values == null_array(column, ())
            axis = "structure" if column.per_structure else "depth"
            reject(~null, column.name, values, "null, since the column counts as missing", axis)


def with_schema(provenance: Mapping[str, Any], schema: RowSchema) -> dict[str, Any]:
    """Return a copy of `provenance` that names its schema."""
    if not isinstance(provenance, Mapping) or not all(isinstance(key, str) for key in provenance):
        raise InputError("provenance", type(provenance).__name__, "a mapping with text keys")
    copy = {"schema": schema.tag, **provenance}
    check_schema(copy["schema"], schema.name, schema.major)
    return copy


def reject(bad: BoolArray, column: str, values: AnyArray, wanted: str, axis: str = "depth") -> None:
    """Raise InputError for the first row (counted from 0) where `bad` is True; `axis` names the second one."""
    by_row = bad.reshape(len(bad), -1).any(axis=1) if bad.size else np.zeros(len(bad), dtype=bool)
    if not by_row.any():
        return
    row = int(by_row.argmax())
    if bad.ndim == 1:
        raise InputError(f"row {row}, column {column}", values[row], wanted)
    entry, *rest = (int(i) for i in np.argwhere(bad[row])[0])
    raise InputError(f"row {row}, column {column}, {axis} {entry + 1}", values[(row, entry, *rest)], wanted)


def check_padding(drafted: IntArray, width: int) -> None:
    """Refuse drafts deeper than the bound, and padded arrays that would not fit in memory."""
    reject(drafted < 0, "drafted", drafted, "a depth of at least 0")
    reject(drafted > MAX_DEPTH, "drafted", drafted, f"a depth of at most {MAX_DEPTH}")
    if len(drafted) * width > MAX_CELLS:
        raise InputError("rows x values a row", f"{len(drafted)} x {width}", f"at most {MAX_CELLS} cells")


def null_array(column: Column, shape: tuple[int, ...]) -> AnyArray:
    """Return an array of nulls of the column's in-memory type."""
    if column.kind == "string":
        return np.full(shape, None, dtype=object)
    if column.kind.startswith("float"):
        return np.full(shape, np.nan, dtype=np.float64)
    return np.full(shape, column.null, dtype=np.int64)


def column_shape(column: Column, rows: int, width: int, k: int, structures: int = 0) -> tuple[int, ...]:
    """Return the in-memory shape: [N], [N, D], [N, D, k] or [N, S]."""
    if column.kind.endswith("_table"):
        return (rows, width, k)
    if column.per_structure:
        return (rows, structures)
    return (rows, width) if column.per_depth else (rows,)


def _scalar(value: Any, column: Column, row: int) -> Any:
    place = f"row {row}, column {column.name}"
    if value is None:
        if column.required:
            raise InputError(place, "null", column.description)
        return None
    if column.kind == "string":
        if not isinstance(value, str):
            raise InputError(place, repr(value), "text")
        return value
    wanted_types = (int, np.integer) if column.kind.startswith("int") else (int, float, np.integer, np.floating)
    if isinstance(value, bool | np.bool_) or not isinstance(value, wanted_types):
        raise InputError(place, repr(value), "an integer" if column.kind.startswith("int") else "a number")
    if column.kind.startswith("float"):
        return float(value)
    if not -(2**63) <= value < 2**63 or (not column.required and value == column.null):
        raise InputError(place, value, column.description if column.required else f"{column.description}, or null")
    return int(value)


def _sequence(value: Any, length: int, column: Column, row: int, what: str) -> list[Any]:
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        raise InputError(f"row {row}, column {column.name}", repr(value), f"a list of {length} values ({what})")
    if len(value) != length:
        raise InputError(
            f"row {row}, column {column.name}",
            f"a list of {len(value)}",
            f"a list of {length} values ({what})",
        )
    return list(value)


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
    drafted_column = schema.column("drafted")
    drafted = np.array(
        [_scalar(row["drafted"], drafted_column, i) for i, row in enumerate(rows)], dtype=np.int64
    ).reshape(len(rows))
    width = int(drafted.max(initial=0))
    check_padding(drafted, max(width * max(k, 1), structures))
    present = {name for row in rows for name in row}
    arrays: dict[str, AnyArray] = {}
    for column in schema.columns:
        array = null_array(column, column_shape(column, len(rows), width, k, structures))
        for index, row in enumerate(rows):
            value = row.get(column.name)
            if column.per_depth:
                if value is not None:
                    _fill_depths(array[index], value, int(drafted[index]), k, column, index)
            elif column.per_structure:
                if value is not None:
                    _fill(array[index], _sequence(value, structures, column, index, "one a structure"), column, index)
            elif (scalar := _scalar(value, column, index)) is not None:
                array[index] = scalar
        arrays[column.name] = array
    missing = tuple(c.name for c in schema.columns if rows and not c.required and c.name not in present)
    return arrays, missing


def _fill(out: AnyArray, values: list[Any], column: Column, row: int) -> None:
    for index, value in enumerate(values):
        if value is not None:
            out[index] = _scalar(value, column, row)


def _fill_depths(out: AnyArray, value: Any, drafted: int, k: int, column: Column, row: int) -> None:
    entries = _sequence(value, drafted, column, row, "as drafted")
    if not column.kind.endswith("_table"):
        return _fill(out, entries, column, row)
    for depth, entry in enumerate(entries):
        if entry is not None:
            _fill(out[depth], _sequence(entry, k, column, row, "top_k"), column, row)


def checked_array(column: Column, value: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return a read-only copy of `value` in the column's in-memory type.

    Raises InputError: For another shape or type.
    """
    kind = "O" if column.kind == "string" else "f" if column.kind.startswith("float") else "i"
    array = np.asarray(value)
    if array.shape != shape:
        raise InputError(f"column {column.name}", f"shape {array.shape}", f"shape {shape}")
    if array.size and array.dtype.kind not in {"O": "OU", "f": "fiu", "i": "iu"}[kind]:
        raise InputError(f"column {column.name}", f"type {array.dtype}", f"{column.kind} values")
    copy = np.array(array, dtype={"O": object, "f": np.float64, "i": np.int64}[kind])
    copy.setflags(write=False)
    return copy


def check_text(values: ObjectArray, column: Column) -> None:
    """Refuse entries that are not text (or, in an optional column, None)."""
    allowed: tuple[type, ...] = (str,) if column.required else (str, type(None))
    bad = np.fromiter((not isinstance(v, allowed) for v in values), dtype=bool, count=len(values))
    reject(bad, column.name, values, "text" if column.required else "text or null")


def check_unit_interval(values: AnyArray, column: str) -> None:
    """Refuse probabilities outside [0, 1]; nan (null) passes."""
    reject(
        ~(np.isnan(values) | ((values >= 0) & (values <= 1))),
        column,
        values,
        "a probability in [0, 1], or null",
    )


def group_codes(*keys: AnyArray) -> IntArray:
    """Return int [N]: the distinct key tuples numbered from 0 by order of appearance."""
    seen: dict[tuple[Any, ...], int] = {}
    rows = zip(*(key.tolist() for key in keys), strict=True)
    return np.fromiter((seen.setdefault(row, len(seen)) for row in rows), dtype=np.int64, count=len(keys[0]))
