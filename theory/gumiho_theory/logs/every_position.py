"""The every-position log: each output position taken as a cycle's start, behind the true prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_theory.drafts.structure import StaticTree, Structure
from gumiho_theory.errors import InputError, check_integer
from gumiho_theory.logs.columns import EVERY_POSITION_SCHEMA
from gumiho_theory.logs.rows import RowLog
from gumiho_theory.logs.schema import reject
from gumiho_theory.rates import MAX_DEPTH
from gumiho_theory.types import FloatArray, IntArray


def _top_k(provenance: Mapping[str, Any]) -> int:
    k = provenance.get("top_k")
    check_integer("provenance, top_k", k, 0, MAX_DEPTH)
    return int(k)  # type: ignore[arg-type]


def _structures(provenance: Mapping[str, Any]) -> tuple[str, ...]:
    texts = provenance.get("structures", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise InputError("provenance, structures", repr(texts), "a list of structure texts")
    if len(set(texts)) != len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError("provenance, structures", f"{twice!r} twice", "each structure once")
    return tuple(texts)


@dataclass(frozen=True, eq=False, kw_only=True)
class EveryPositionLog(RowLog):
    """One row an output position, held by column: the columns of `RowLog` and those below.

    k = provenance["top_k"], S = the number of provenance["structures"]; N rows, D = the deepest row, as in `RowLog`.

    Parameters
    ----------
    true_token : int array [N, D]
        Token id of the true continuation at each depth; -1 = null (the text ends before it).
    top_ids : int array [N, D, k]
        The drafter's k best tokens, misses included (calibration needs them); -1 = null.
    top_q : float array [N, D, k]
        Their probabilities; nan = null.
    accepted : int array [N, S]
        Accepted length (no bonus) of each structure for a cycle that starts at the row, behind the true
        prefix; -1 = null. A structure may be deeper than `drafted`.
    censored : int array [N, S]
        1 where the known text ended before that length was decided, so that `accepted` is a lower bound; else
        0. -1 = null, where `accepted` is.

    Notes
    -----
    In the provenance, ``top_k`` is required; ``structures`` lists the distinct texts of the structures, and without it
    S = 0. After the stop reason `eos` the last row of a (prompt_id, turn) is the last token but the stop id, otherwise
    the last token itself, from which no cycle of a real run starts.
    """

    schema = EVERY_POSITION_SCHEMA

    true_token: IntArray
    top_ids: IntArray
    top_q: FloatArray
    accepted: IntArray
    censored: IntArray

    @classmethod
    def _widths(cls, provenance: Mapping[str, Any]) -> tuple[int, int]:
        return _top_k(provenance), len(_structures(provenance))

    def _check_rows(self) -> None:
        # Writing the log would lose what stands in a column that counts as missing.
        for column in map(self.schema.column, self.missing):
            values, axis = getattr(self, column.name), "structure" if column.per_structure else "depth"
            reject(~column.is_null(values), column.name, values, "null, since the column counts as missing", axis)
        super()._check_rows()

    def _check_depths(self) -> None:
        super()._check_depths()
        reject(self.accepted < -1, "accepted", self.accepted, "at least 0, or null", "structure")
        reject(~np.isin(self.censored, (-1, 0, 1)), "censored", self.censored, "0, 1 or null", "structure")
        # A length whose censoring is unknown would pass for a decided one.
        apart = (self.accepted == -1) != (self.censored == -1)
        reject(apart, "censored", self.censored, "null where accepted is null, and only there", "structure")

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return len(self.prompt_id)

    @property
    def top_k(self) -> int:
        """Number of the drafter's candidates logged at each depth."""
        return _top_k(self.provenance)

    @property
    def structures(self) -> tuple[str, ...]:
        """Texts of the structures whose accepted lengths were logged, in the columns' order."""
        return _structures(self.provenance)

    def accepted_by(self, structure: Structure | str) -> IntArray:
        """Return int [N]: accepted length (no bonus) of a structure in a cycle that starts at each row; -1 = null.

        A lower bound where `censored_by` is 1.

        Parameters
        ----------
        structure : Structure or str
            One of the log's, or its text in `structures`. A static tree is found by its rank paths, not by the
            name of its file, which may hold another tree by now.

        Raises
        ------
        InputError
            When the log does not have it.
        """
        return self.accepted[:, self._place(structure)]

    def censored_by(self, structure: Structure | str) -> IntArray:
        """Return int [N]: 1 where the text ended before a structure's accepted length was decided; -1 = null.

        Raises
        ------
        InputError
            When the log does not have it; see `accepted_by`.
        """
        return self.censored[:, self._place(structure)]

    def _place(self, structure: Structure | str) -> int:
        text = str(StaticTree(structure.paths) if isinstance(structure, StaticTree) else structure)
        if text not in self.structures:
            raise InputError("structure", text, f"one of the log's: {', '.join(self.structures) or 'none'}")
        return self.structures.index(text)
