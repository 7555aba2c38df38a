"""What a log's columns are: kinds, shapes and nulls in memory, and checks that name the row and the column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.files import Schema
from gumiho_theory.rates import MAX_DEPTH
from gumiho_theory.types import AnyArray, BoolArray, IntArray

Kind = Literal["string", "int", "float", "int_list", "float_list", "int_table", "float_table", "int_structures"]

MAX_ROWS = 50_000_000
# One padded per-depth array of int64 or float64 then stays within 2 GiB.
MAX_CELLS = 2**28

# By type: numpy's type in memory, and the kinds of array that can be turned into it.
_IN_MEMORY: dict[str, tuple[Any, str]] = {
    "string": (object, "OU"),
    "float": (np.float64, "fiu"),
    "int": (np.int64, "iu"),
}


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
    def type(self) -> str:
        """Type of the single values: string, int or float."""
        return self.kind.partition("_")[0]

    @property
    def per_depth(self) -> bool:
        """Whether the column holds one entry per drafted depth."""
        return self.kind.endswith(("_list", "_table"))

    @property
    def is_table(self) -> bool:
        """Whether such an entry is a list of k."""
        return self.kind.endswith("_table")

    @property
    def per_structure(self) -> bool:
        """Whether the column holds one entry per structure that the provenance names."""
        return self.kind.endswith("_structures")

    def is_null(self, values: AnyArray) -> BoolArray:
        """Return where values of this column, as they are in memory, stand for null."""
        null = np.isnan(values) if self.type == "float" else values == null_array(self, ())
        return np.asarray(null, dtype=bool)


@dataclass(frozen=True)
class RowSchema(Schema):
    """A named, versioned set of columns."""

    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """Return the column of that name."""
        return next(column for column in self.columns if column.name == name)

    def shapes(self, drafted: IntArray, k: int = 0, structures: int = 0) -> dict[str, tuple[int, ...]]:
        """Return every column's shape in memory; InputError for depths out of bounds or more cells than are allowed."""
        reject(drafted < 0, "drafted", drafted, "a depth of at least 0")
        reject(drafted > MAX_DEPTH, "drafted", drafted, f"a depth of at most {MAX_DEPTH}")
        rows, depth = len(drafted), int(drafted.max(initial=0))
        width = max(depth * max(k, 1), structures)
        if rows * width > MAX_CELLS:
            raise InputError("rows x values a row", f"{rows} x {width}", f"at most {MAX_CELLS} cells")
        return {column.name: column_shape(column, rows, depth, k, structures) for column in self.columns}

    def nulls(self, drafted: IntArray, k: int = 0, structures: int = 0) -> dict[str, AnyArray]:
        """Return every column full of nulls, padded to the deepest draft; InputError as `shapes`."""
        shapes = self.shapes(drafted, k, structures)
        return {column.name: null_array(column, shapes[column.name]) for column in self.columns}

    def check_missing(self, missing: Iterable[str]) -> tuple[str, ...]:
        """Return `missing` in the schema's order; only optional columns can be missing."""
        names = set(missing)
        optional = tuple(column.name for column in self.columns if not column.required)
        if not names <= set(optional):
            raise InputError("missing", sorted(names - set(optional)), "names of optional columns")
        return tuple(name for name in optional if name in names)

    def stamped(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of `provenance` that names this schema."""
        if not isinstance(provenance, Mapping) or not all(isinstance(key, str) for key in provenance):
            raise InputError("provenance", type(provenance).__name__, "a mapping with text keys")
        copy = {"schema": self.tag, **provenance}
        self.check(copy["schema"])
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


def null_array(column: Column, shape: tuple[int, ...]) -> AnyArray:
    """Return an array of nulls of the column's in-memory type."""
    null = {"string": None, "float": np.nan, "int": column.null}[column.type]
    return np.full(shape, null, dtype=_IN_MEMORY[column.type][0])


def column_shape(column: Column, rows: int, width: int, k: int, structures: int = 0) -> tuple[int, ...]:
    """Return the in-memory shape: [N], [N, D], [N, D, k] or [N, S]."""
    if column.is_table:
        return (rows, width, k)
    if column.per_structure:
        return (rows, structures)
    return (rows, width) if column.per_depth else (rows,)


def checked_array(column: Column, value: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return a read-only copy of `value` in the column's in-memory type.

    Raises InputError: For another shape or type.
    """
    dtype, kinds = _IN_MEMORY[column.type]
    array = np.asarray(value)
    if array.shape != shape:
        raise InputError(f"column {column.name}", f"shape {array.shape}", f"shape {shape}")
    if array.size and array.dtype.kind not in kinds:
        raise InputError(f"column {column.name}", f"type {array.dtype}", f"{column.kind} values")
    copy = np.array(array, dtype=dtype)
    copy.setflags(write=False)
    return copy


def group_codes(*keys: AnyArray) -> IntArray:
    """Return int [N]: the distinct key tuples numbered from 0 by order of appearance."""
    seen: dict[tuple[Any, ...], int] = {}
    rows = zip(*(key.tolist() for key in keys), strict=True)
    return np.fromiter((seen.setdefault(row, len(seen)) for row in rows), dtype=np.int64, count=len(keys[0]))
