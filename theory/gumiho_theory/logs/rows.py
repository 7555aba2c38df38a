"""RowLog: what the cycle trace and the every-position log share: columns, checks, reading, writing, selecting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from gumiho_theory.errors import InputError, within
from gumiho_theory.files import PathLike
from gumiho_theory.logs.columns import STOP_REASONS
from gumiho_theory.logs.plain import arrays_from_rows
from gumiho_theory.logs.schema import RowSchema, checked_array, group_codes, reject
from gumiho_theory.types import BoolArray, FloatArray, IntArray, ObjectArray


class _Kind:
    """What a kind of log is; apart from the dataclass, so that none of this is among its fields."""

    schema: ClassVar[RowSchema]
    # What messages call the log and one of its rows.
    _log: ClassVar[str] = "log"
    _row: ClassVar[str] = "row"


@dataclass(frozen=True, eq=False, kw_only=True)
class RowLog(_Kind):
    """A log of N rows, held by column; D is its deepest row. All arrays are read-only copies.

    Parameters
    ----------
    prompt_id : object array [N] of str
    task : object array [N] of str or None
    turn, position : int array [N]
        From 0; position is the index of the tree's root in the sequence. In row order the positions of one
        (prompt_id, turn) rise; prompts may interleave.
    drafted : int array [N]
        Depth of each row.
    stop_reason : object array [N] of str or None
        One of eos, stop_string, length, context; only on the last row of a (prompt_id, turn).
    rank : int array [N, D]
        1-based rank of the true token among the drafter's candidates at each depth; 0 = null.
    q_draft, p_target : float array [N, D]
        The true token's probabilities under drafter and target; nan = null.
    provenance : dict
        JSON values; ``schema`` is added.
    missing : tuple of str
        Optional columns that the source did not have; they are null throughout.

    Raises
    ------
    InputError
        For inconsistent rows: names the first bad row (counted from 0) and its column.
    """

    prompt_id: ObjectArray
    task: ObjectArray
    turn: IntArray
    position: IntArray
    drafted: IntArray
    stop_reason: ObjectArray
    rank: IntArray
    q_draft: FloatArray
    p_target: FloatArray
    provenance: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "provenance", self.schema.stamped(self.provenance))
        object.__setattr__(self, "missing", self.schema.check_missing(self.missing))
        drafted = checked_array(self.schema.column("drafted"), self.drafted, (len(self.prompt_id),))
        shapes = self.schema.shapes(drafted, *self._widths(self.provenance))
        for column in self.schema.columns:
            array = checked_array(column, getattr(self, column.name), shapes[column.name])
            object.__setattr__(self, column.name, array)
        self._check_rows()
        order = np.argsort(group_codes(self.prompt_id, self.turn), kind="stable")
        codes = group_codes(self.prompt_id[order], self.turn[order])
        self._check_order(order, codes[1:] == codes[:-1])
        self._check_depths()

    @classmethod
    def _widths(cls, provenance: Mapping[str, Any]) -> tuple[int, int]:
        """Return k of the table columns and the number of structures, as the provenance gives them."""
        return 0, 0

    def _check_rows(self) -> None:
        """Check each row by itself, but for what it holds by depth."""
        for column in self.schema.columns:
            if column.type == "string":
                values = getattr(self, column.name)
                allowed = (str,) if column.required else (str, type(None))
                bad = np.fromiter((not isinstance(v, allowed) for v in values), dtype=bool, count=len(values))
                reject(bad, column.name, values, "text" if column.required else "text or null")
        reject(self.turn < 0, "turn", self.turn, "at least 0")
        reject(self.position < 0, "position", self.position, "at least 0")
        known = np.isin(self.stop_reason, np.array([None, *STOP_REASONS], dtype=object))
        reject(~known, "stop_reason", self.stop_reason, f"null or one of {', '.join(STOP_REASONS)}")

    def _check_order(self, order: IntArray, same: BoolArray) -> None:
        """Check rows beside those before them in the same output.

        `order` brings the rows of each (prompt_id, turn) together; `same` [N - 1] says where two neighbours in it are
        of one.
        """
        bad = np.zeros(len(order), dtype=bool)
        bad[order[1:]] = same & (self.position[order[1:]] <= self.position[order[:-1]])
        reject(bad, "position", self.position, "positions that rise within a prompt_id and turn")
        bad[:] = False
        given = np.array([reason is not None for reason in self.stop_reason[order[:-1]]], dtype=bool)
        bad[order[:-1]] = same & given
        reject(bad, "stop_reason", self.stop_reason, f"null before the last {self._row} of a prompt_id and turn")

    def _unknown(self) -> tuple[BoolArray, str]:
        """Return where [N, D] a row can hold nothing by depth, and what is wanted there."""
        return np.arange(1, self.depth + 1) > self.drafted[:, None], "null beyond drafted"

    def _check_depths(self) -> None:
        unknown, wanted = self._unknown()
        for column in self.schema.columns:
            if not column.per_depth:
                continue
            values = getattr(self, column.name)
            if column.type == "float":
                bad = ~(np.isnan(values) | ((values >= 0) & (values <= 1)))
                reject(bad, column.name, values, "a probability in [0, 1], or null")
            else:
                reject(values < column.null, column.name, values, f"at least {column.null + 1}, or null")
            outside = unknown[:, :, None] if column.is_table else unknown
            reject(outside & ~column.is_null(values), column.name, values, wanted)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], provenance: Mapping[str, Any] | None = None) -> Self:
        """Build a log from plain rows.

        Parameters
        ----------
        rows : iterable of mappings
            Keys are column names; None is null, and optional columns may be left out. Per-depth columns are lists of
            `drafted` values (None inside for null), those of an every-position log's candidates lists of k at each
            depth; columns by structure are lists of one value for each structure.
        provenance : mapping, optional

        Raises
        ------
        InputError
            For unknown or missing keys, wrong types, wrong list lengths, or inconsistent rows.
        """
        facts = dict(provenance or {})
        arrays, missing = arrays_from_rows(cls.schema, rows, *cls._widths(facts))
        return cls(**arrays, provenance=facts, missing=missing)

    @classmethod
    def read(cls, path: PathLike) -> Self:
        """Read a log from Parquet.

        Unknown columns are ignored; optional columns that the file lacks, as older ones may, are null and listed in
        `missing`.

        Raises
        ------
        InputError
            When the file cannot be read, is not Parquet, has another schema or a newer version, lacks a
            required column, has a wrong type, is absurdly large, or holds inconsistent rows.
        """
        from gumiho_theory.logs.parquet import read_table

        arrays, provenance, missing = read_table(path, cls.schema, cls._widths)
        with within(path):
            return cls(**arrays, provenance=provenance, missing=missing)

    def write(self, path: PathLike) -> None:
        """Write the log as Parquet, atomically, with the provenance in the file's metadata.

        Raises
        ------
        InputError
            When the file cannot be written or the provenance is not JSON.
        """
        from gumiho_theory.logs.parquet import write_table

        write_table(path, self.schema, self, self.provenance, self.missing)

    @property
    def depth(self) -> int:
        """Depth D of the deepest row; 0 for a log without rows."""
        return int(self.drafted.max(initial=0))

    @property
    def prompts(self) -> tuple[str, ...]:
        """Distinct prompt ids in order of appearance."""
        return tuple(dict.fromkeys(self.prompt_id.tolist()))

    def select(self, prompt_ids: Iterable[str]) -> Self:
        """Return the rows of some prompts, in the log's own order.

        Raises
        ------
        InputError
            When a prompt does not occur in the log.
        """
        wanted = set(prompt_ids)
        unknown = wanted - set(self.prompts)
        if unknown:
            raise InputError("prompt_ids", repr(min(unknown)), f"prompts of the {self._log}")
        keep = np.array([prompt in wanted for prompt in self.prompt_id], dtype=bool)
        width = int(self.drafted[keep].max(initial=0))
        arrays = {column.name: getattr(self, column.name)[keep] for column in self.schema.columns}
        for column in self.schema.columns:
            if column.per_depth:
                arrays[column.name] = arrays[column.name][:, :width]
        return type(self)(**arrays, provenance=self.provenance, missing=self.missing)
