"""The every-position log: each output position taken as a cycle's start, behind the true prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_theory.drafts.structure import StaticTree, Structure
from gumiho_theory.errors import InputError
from gumiho_theory.logs.columns import EVERY_POSITION_SCHEMA
from gumiho_theory.logs.rows import RowLog
from gumiho_theory.logs.schema import check_unit_interval, reject
from gumiho_theory.rates import MAX_DEPTH
from gumiho_theory.types import FloatArray, IntArray, ObjectArray


def _top_k(provenance: Mapping[str, Any]) -> int:
    k = provenance.get("top_k")
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= MAX_DEPTH:
        raise InputError("provenance, top_k", repr(k), f"an integer from 0 to {MAX_DEPTH}")
    return k


def _structures(provenance: Mapping[str, Any]) -> tuple[str, ...]:
    texts = provenance.get("structures", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise InputError("provenance, structures", repr(texts), "a list of structure texts")
    if len(set(texts)) != len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError("provenance, structures", f"{twice!r} twice", "each structure once")
    return tuple(texts)


@dataclass(frozen=True, eq=False)
class EveryPositionLog(RowLog):
    """One row an output position, held by column.

    N rows, D = the deepest row, k = provenance["top_k"], S = the number of provenance["structures"].

    Parameters
    ----------
    prompt_id : object array [N] of str
    task : object array [N] of str or None
    turn, position : int array [N]
        From 0; positions rise within a (prompt_id, turn).
    drafted : int array [N]
        Depths logged in the row.
    stop_reason : object array [N] of str or None
        As in a trace; only on the last row of a (prompt_id, turn). After `eos` that row is the last token but the
        stop id, otherwise the last token itself, from which no cycle of a real run starts.
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
    accepted : int array [N, S]
        Accepted length (no bonus) of each structure for a cycle that starts at the row, behind the true
        prefix; -1 = null. A structure may be deeper than `drafted`.
    censored : int array [N, S]
        1 where the known text ended before that length was decided, so that `accepted` is a lower bound; else
        0. -1 = null, where `accepted` is.
    provenance : dict
        JSON values; ``top_k`` is required, ``schema`` is added. ``structures`` lists the distinct texts of the
        structures; without it S = 0.
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
    stop_reason: ObjectArray
    true_token: IntArray
    rank: IntArray
    q_draft: FloatArray
    p_target: FloatArray
    top_ids: IntArray
    top_q: FloatArray
    accepted: IntArray
    censored: IntArray
    provenance: dict[str, Any]
    missing: tuple[str, ...] = ()

    schema = EVERY_POSITION_SCHEMA
    row = "row"

    def __post_init__(self) -> None:
        self._take()
        self.schema.check_absent(self.missing, self)
        self._at_least_0("turn", "position")
        order, same = self._by_turn()
        self._check_reasons()
        self._check_order(order, same)
        self._check_depths()
        self._check_structures()

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

    def _check_structures(self) -> None:
        reject(self.accepted < -1, "accepted", self.accepted, "at least 0, or null", "structure")
        reject(~np.isin(self.censored, (-1, 0, 1)), "censored", self.censored, "0, 1 or null", "structure")
        # A length whose censoring is unknown would pass for a decided one.
        apart = (self.accepted == -1) != (self.censored == -1)
        reject(apart, "censored", self.censored, "null where accepted is null, and only there", "structure")

    @staticmethod
    def widths(provenance: Mapping[str, Any]) -> tuple[int, int]:
        """Return k and the number of structures, as the provenance names them."""
        return _top_k(provenance), len(_structures(provenance))

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
