"""The every-position log: each output position taken as a cycle's start, behind the true prefix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_theory._columns import EVERY_POSITION_SCHEMA
from gumiho_theory._schema import (
    MAX_DEPTH,
    arrays_from_rows,
    check_padding,
    check_text,
    check_unit_interval,
    checked_array,
    column_shape,
    group_codes,
    reject,
    with_schema,
)
from gumiho_theory._types import FloatArray, IntArray, ObjectArray
from gumiho_theory.errors import InputError
from gumiho_theory.files import PathLike


def _top_k(provenance: Mapping[str, Any]) -> int:
    k = provenance.get("top_k")
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= MAX_DEPTH:
        raise InputError("provenance, top_k", repr(k), f"an integer from 0 to {MAX_DEPTH}")
    return k


@dataclass(frozen=True, eq=False)
class EveryPositionLog:
    """One row an output position, held by column. N rows, D = the deepest row, k = provenance["top_k"].

    Parameters
    ----------
    prompt_id : object array [N] of str
    task : object array [N] of str or None
    turn, position : int array [N]
        From 0; positions rise within a (prompt_id, turn).
    drafted : int array [N]
        Depths logged in the row.
    true_token : int array [N, D]
        Token id of the true continuation at each depth; -1 = null (the text ends before it).
    rank : int array [N, D]
        1-based rank of the true token among the drafter's candidates; 0 = null.
    q_draft, p_target : float array [N, D]
        The true token's probabilities; nan = null.
    top_ids : int array [N, D, k]
        The drafter's k best tokens, misses included (calibration needs them); -1 = null.
    top_q : float array [N, D, k]
        Their probabilities; nan = null.
    provenance : dict
        JSON values; ``top_k`` is required, ``schema`` is added.
    missing : tuple of str
        Optional columns that the source did not have.

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
    true_token: IntArray
    rank: IntArray
    q_draft: FloatArray
    p_target: FloatArray
    top_ids: IntArray
    top_q: FloatArray
    provenance: dict[str, Any]
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        schema = EVERY_POSITION_SCHEMA
        object.__setattr__(self, "provenance", with_schema(self.provenance, schema))
        object.__setattr__(self, "missing", schema.check_missing(self.missing))
        k = _top_k(self.provenance)
        drafted = checked_array(schema.column("drafted"), self.drafted, (len(self.prompt_id),))
        width = int(drafted.max(initial=0))
        check_padding(drafted, width * max(k, 1))
        for column in schema.columns:
            shape = column_shape(column, len(drafted), width, k)
            object.__setattr__(self, column.name, checked_array(column, getattr(self, column.name), shape))
        for name in ("prompt_id", "task"):
            check_text(getattr(self, name), schema.column(name))
        reject(self.turn < 0, "turn", self.turn, "at least 0")
        reject(self.position < 0, "position", self.position, "at least 0")
        order = np.argsort(group_codes(self.prompt_id, self.turn), kind="stable")
        codes = group_codes(self.prompt_id[order], self.turn[order])
        bad = np.zeros(len(order), dtype=bool)
        bad[order[1:]] = (codes[1:] == codes[:-1]) & (self.position[order[1:]] <= self.position[order[:-1]])
        reject(bad, "position", self.position, "positions that rise within a prompt_id and turn")
        self._check_depths()

    def _check_depths(self) -> None:
        beyond = np.arange(1, self.depth + 1) > self.drafted[:, None]
        for column in EVERY_POSITION_SCHEMA.columns:
            if not column.per_depth:
                continue
            values = getattr(self, column.name)
            if column.kind.startswith("float"):
                check_unit_interval(values, column.name)
                given = ~np.isnan(values)
            else:
                reject(values < column.null, column.name, values, f"at least {column.null + 1}, or null")
                given = values != column.null
            outside = beyond if values.ndim == 2 else beyond[:, :, None]
            reject(outside & given, column.name, values, "null beyond drafted")

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], provenance: Mapping[str, Any]) -> EveryPositionLog:
        """Build a log from plain rows; lists hold `drafted` values, ``top_ids`` and ``top_q`` lists of k.

        Raises
        ------
        InputError
            For unknown or missing keys, wrong types, wrong list lengths, or inconsistent rows.
        """
        arrays, missing = arrays_from_rows(EVERY_POSITION_SCHEMA, rows, _top_k(provenance))
        return cls(**arrays, provenance=dict(provenance), missing=missing)

    @classmethod
    def read(cls, path: PathLike) -> EveryPositionLog:
        """Read a log from Parquet; the same rules as `Trace.read`.

        Raises
        ------
        InputError
            When the file is unreadable, of another schema, or inconsistent.
        """
        from gumiho_theory._parquet import read_table

        arrays, provenance, missing = read_table(path, EVERY_POSITION_SCHEMA, _top_k)
        try:
            return cls(**arrays, provenance=provenance, missing=missing)
        except InputError as error:
            raise error.within(path) from None

    def write(self, path: PathLike) -> None:
        """Write the log as Parquet, atomically.

        Raises
        ------
        InputError
            When the file cannot be written or the provenance is not JSON.
        """
        from gumiho_theory._parquet import write_table

        write_table(path, EVERY_POSITION_SCHEMA, self, self.provenance, self.missing)

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return len(self.prompt_id)

    @property
    def depth(self) -> int:
        """Deepest row D; 0 for an empty log."""
        return int(self.drafted.max(initial=0))

    @property
    def top_k(self) -> int:
        """Number of the drafter's candidates logged at each depth."""
        return _top_k(self.provenance)

    @property
    def prompts(self) -> tuple[str, ...]:
        """Distinct prompt ids in order of appearance."""
        return tuple(dict.fromkeys(self.prompt_id.tolist()))
