"""What the two row logs share: checked columns, rows in the order of their texts, plain rows in, Parquet in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.files import PathLike
from gumiho_theory.logs.columns import STOP_REASONS
from gumiho_theory.logs.schema import (
    RowSchema,
    arrays_from_rows,
    check_padding,
    check_text,
    checked_array,
    column_shape,
    group_codes,
    reject,
    with_schema,
)
from gumiho_theory.types import BoolArray, IntArray, ObjectArray


class RowLog:
    """Base of `Trace` and `EveryPositionLog`: rows held by column, read-only, with their provenance.

    A subclass is a frozen dataclass with one field a column of its `schema`, then `provenance` and `missing`.
    """

    schema: ClassVar[RowSchema]
    row: ClassVar[str]  # what a row is, in messages

    prompt_id: ObjectArray
    task: ObjectArray
    turn: IntArray
    position: IntArray
    drafted: IntArray
    stop_reason: ObjectArray
    provenance: dict[str, Any]
    missing: tuple[str, ...]

    if TYPE_CHECKING:  # the subclass's own, made by dataclass

        def __init__(self, **columns: Any) -> None: ...

    @staticmethod
    def widths(provenance: Mapping[str, Any]) -> tuple[int, int]:
        """Return k of the table columns and the number of structures; InputError where the provenance is wrong."""
        return 0, 0

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], provenance: Mapping[str, Any] | None = None) -> Self:
        """Build a log from plain rows.

        `rows`: Keys are column names; None is null. Columns of a value a depth are lists of `drafted` values (None
        inside for null), or None. Optional columns may be left out. Raises InputError: For unknown or missing keys,
        wrong types, wrong list lengths, or inconsistent rows.
        """
        made_by = dict(provenance or {})
        arrays, missing = arrays_from_rows(cls.schema, rows, *cls.widths(made_by))
        return cls(**arrays, provenance=made_by, missing=missing)

    @classmethod
    def read(cls, path: PathLike) -> Self:
        """Read a log from Parquet.

        Unknown columns are ignored; optional columns that the file lacks are null and listed in `missing`.

        Raises InputError: When the file cannot be read, is not Parquet, has another schema or a newer version, lacks a
        required column, has a wrong type, is absurdly large, or holds inconsistent rows.
        """
        from gumiho_theory.logs.parquet import read_table

        arrays, provenance, missing = read_table(path, cls.schema, cls.widths)
        try:
            return cls(**arrays, provenance=provenance, missing=missing)
        except InputError as error:
            raise error.within(path) from None

    def write(self, path: PathLike) -> None:
        """Write the log as Parquet, atomically, with the provenance in the file's metadata.

        Raises InputError: When the file cannot be written or the provenance is not JSON.
        """
        from gumiho_theory.logs.parquet import write_table

        write_table(path, self.schema, self, self.provenance, self.missing)

    @property
    def depth(self) -> int:
        """Deepest row D; 0 for a log without rows."""
        return int(self.drafted.max(initial=0))

    @property
    def prompts(self) -> tuple[str, ...]:
        """Distinct prompt ids in order of appearance."""
        return tuple(dict.fromkeys(self.prompt_id.tolist()))

    def _take(self) -> None:
        """Replace what was handed in by checked, read-only copies."""
        object.__setattr__(self, "provenance", with_schema(self.provenance, self.schema))
        object.__setattr__(self, "missing", self.schema.check_missing(self.missing))
        k, structures = self.widths(self.provenance)
        drafted = checked_array(self.schema.column("drafted"), self.drafted, (len(self.prompt_id),))
        width = int(drafted.max(initial=0))
        check_padding(drafted, max(width * max(k, 1), structures))
        for column in self.schema.columns:
            shape = column_shape(column, len(drafted), width, k, structures)
            object.__setattr__(self, column.name, checked_array(column, getattr(self, column.name), shape))
        for name in ("prompt_id", "task", "stop_reason"):
            check_text(getattr(self, name), self.schema.column(name))

    def _at_least_0(self, *names: str) -> None:
        for name in names:
            reject(getattr(self, name) < 0, name, getattr(self, name), "at least 0")

    def _check_reasons(self) -> None:
        known = np.isin(self.stop_reason, np.array([None, *STOP_REASONS], dtype=object))
        reject(~known, "stop_reason", self.stop_reason, f"null or one of {', '.join(STOP_REASONS)}")

    def _by_turn(self) -> tuple[IntArray, BoolArray]:
        """Return the rows turn by turn, and between each two of them whether they are of one turn."""
        order = np.argsort(group_codes(self.prompt_id, self.turn), kind="stable")
        codes = group_codes(self.prompt_id[order], self.turn[order])
        return order, codes[1:] == codes[:-1]

    def _check_order(self, order: IntArray, same: BoolArray) -> None:
        bad = np.zeros(len(order), dtype=bool)
        bad[order[1:]] = same & (self.position[order[1:]] <= self.position[order[:-1]])
        reject(bad, "position", self.position, "positions that rise within a prompt_id and turn")
        bad[:] = False
        bad[order[:-1]] = same & np.array([reason is not None for reason in self.stop_reason[order[:-1]]], dtype=bool)
        reject(bad, "stop_reason", self.stop_reason, f"null before the last {self.row} of a prompt_id and turn")
