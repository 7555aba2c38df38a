"""The cycle trace: one row a cycle, its conventions, and what is counted from it.

Units: seconds. Token positions are 0-based indices into the sequence; draft positions, depths and ranks are
1-based; cycles and turns count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.logs.columns import TRACE_SCHEMA
from gumiho_theory.logs.counts import AcceptanceCounts
from gumiho_theory.logs.rows import RowLog
from gumiho_theory.logs.schema import check_unit_interval, group_codes, reject
from gumiho_theory.types import BoolArray, FloatArray, IntArray, ObjectArray


@dataclass(frozen=True, eq=False)
class Trace(RowLog):
    """One row a cycle, held by column. C cycles, D = the deepest draft.

    Parameters
    ----------
    prompt_id : object array [C] of str
    task : object array [C] of str or None
    turn, cycle, position : int array [C]
        Turn and cycle from 0; position is the 0-based index of the tree's root in the sequence. In row
        order the cycles of one (prompt_id, turn) count 0, 1, 2, ... and their positions rise; prompts may
        interleave.
    drafted, nodes, accepted, committed : int array [C]
        Depth of the draft; tokens verified (root included); accepted length L (no bonus, before any cut of
        the output); tokens added to the output.
    censored_at : int array [C]
        Depth beyond which acceptance is unknown, -1 for null (L known in full). An accepted EOS at depth e
        is written accepted = censored_at = e; a draft shrunk by the end of the context has
        censored_at = drafted.
    stop_reason : object array [C] of str or None
        One of eos, stop_string, length, context; only on the last cycle of a (prompt_id, turn).
    draft_seconds, verify_seconds, other_seconds : float array [C]
        nan where not measured.
    rank : int array [C, D]
        1-based rank, among the drafter's candidates, of the target's token at each depth along the true
        continuation. 0 = null: not drafted, never reached, or reached and not among the candidates.
    q_draft, p_target : float array [C, D]
        Probabilities of that token under drafter and target; nan = null. Per-depth values stand only where
        the position was at risk.
    expected_accepted : float array [C]
        Accepted length (no bonus) that the drafter's own scores promised: the sum of a dynamic tree's path
        probabilities, calibrated where provenance says so; nan = null (other structures).
    provenance : dict
        JSON values: versions, arguments, models, structure, device, seed. ``schema`` is added.
    missing : tuple of str
        Optional columns that the source did not have; they are null throughout.

    Raises
    ------
    InputError
        For inconsistent rows: names the first bad row (counted from 0) and its column.

    Notes
    -----
    Position i is at risk in a cycle when accepted >= i - 1, drafted >= i, and censored_at is null or >= i
    (a discrete survival time with right censoring; see `at_risk`). All arrays are read-only copies.
    """

    prompt_id: ObjectArray
    task: ObjectArray
    turn: IntArray
    cycle: IntArray
    position: IntArray
    drafted: IntArray
    nodes: IntArray
    accepted: IntArray
    committed: IntArray
    censored_at: IntArray
    stop_reason: ObjectArray
    draft_seconds: FloatArray
    verify_seconds: FloatArray
    other_seconds: FloatArray
    rank: IntArray
    q_draft: FloatArray
    p_target: FloatArray
    expected_accepted: FloatArray
    provenance: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    schema = TRACE_SCHEMA
    row = "cycle"

    def __post_init__(self) -> None:
        self._take()
        self._check_rows()
        self._check_cycles()
        self._check_depths()

    def _check_rows(self) -> None:
        self._at_least_0("turn", "position", "accepted", "committed")
        reject(self.accepted > self.drafted, "accepted", self.accepted, "at most drafted")
        reject(self.nodes <= self.drafted, "nodes", self.nodes, "at least drafted + 1 (the root counts)")
        reject(self.committed > self.accepted + 1, "committed", self.committed, "at most accepted + 1")
        outside = (self.censored_at < self.accepted) | (self.censored_at > self.drafted)
        reject(~self.complete & outside, "censored_at", self.censored_at, "null, or from accepted to drafted")
        self._check_reasons()
        for name in ("draft_seconds", "verify_seconds", "other_seconds", "expected_accepted"):
            values, unit = getattr(self, name), self.schema.column(name).unit
            good = np.isnan(values) | ((values >= 0) & np.isfinite(values))
            reject(~good, name, values, f"{'seconds' if unit == 's' else unit} of at least 0, or null")

    def _check_cycles(self) -> None:
        order, same = self._by_turn()
        starts = np.concatenate([[True], ~same]) if len(order) else np.zeros(0, dtype=bool)
        first = np.flatnonzero(starts)[np.cumsum(starts) - 1] if len(order) else order
        bad = np.zeros(len(order), dtype=bool)
        bad[order] = self.cycle[order] != np.arange(len(order)) - first
        reject(bad, "cycle", self.cycle, "0, 1, 2, ... within a prompt_id and turn")
        self._check_order(order, same)

    def _check_depths(self) -> None:
        unreached = ~self.at_risk()
        reject(self.rank < 0, "rank", self.rank, "a rank of at least 1, or null")
        reject(unreached & (self.rank != 0), "rank", self.rank, "null where the position was not at risk")
        for name in ("q_draft", "p_target"):
            values = getattr(self, name)
            check_unit_interval(values, name)
            reject(unreached & ~np.isnan(values), name, values, "null where the position was not at risk")

    @property
    def n_cycles(self) -> int:
        """Number of cycles C."""
        return len(self.prompt_id)

    @property
    def complete(self) -> BoolArray:
        """Bool [C]: cycles whose accepted length is known in full (censored_at null)."""
        complete: BoolArray = self.censored_at == -1
        return complete

    def at_risk(self) -> BoolArray:
        """Return the risk set, bool [C, D]: whether position i (column i - 1) was tried in each cycle."""
        i = np.arange(1, self.depth + 1)
        reached = (self.accepted[:, None] >= i - 1) & (self.drafted[:, None] >= i)
        risk: BoolArray = reached & (self.complete[:, None] | (self.censored_at[:, None] >= i))
        return risk

    def select(self, prompt_ids: Iterable[str]) -> Trace:
        """Return the cycles of some prompts, in the trace's own order.

        Raises
        ------
        InputError
            When a prompt does not occur in the trace.
        """
        wanted = set(prompt_ids)
        unknown = wanted - set(self.prompts)
        if unknown:
            raise InputError("prompt_ids", repr(min(unknown)), "prompts of the trace")
        keep = np.array([prompt in wanted for prompt in self.prompt_id], dtype=bool)
        width = int(self.drafted[keep].max(initial=0))
        arrays = {
            column.name: getattr(self, column.name)[keep][:, :width]
            if column.per_depth
            else getattr(self, column.name)[keep]
            for column in TRACE_SCHEMA.columns
        }
        return Trace(**arrays, provenance=self.provenance, missing=self.missing)

    def counts_by_prompt(self) -> AcceptanceCounts:
        """Sum the trace by prompt (groups in order of appearance): the clusters that intervals resample."""
        code = group_codes(self.prompt_id)
        risk = self.at_risk()
        hits = risk & (self.accepted[:, None] >= np.arange(1, self.depth + 1))

        def by_prompt(values: BoolArray | IntArray) -> IntArray:
            sums = np.zeros((len(self.prompts), *values.shape[1:]), dtype=np.int64)
            np.add.at(sums, code, values)
            return sums

        return AcceptanceCounts(
            groups=self.prompts,
            cycles=by_prompt(np.ones(self.n_cycles, dtype=np.int64)),
            total_accepted=by_prompt(np.where(self.complete, self.accepted, 0)),
            complete_cycles=by_prompt(self.complete),
            at_risk=by_prompt(risk),
            accepted=by_prompt(hits),
            clusters="prompts",
        )

    def tau(self) -> float | None:
        """Mean acceptance length over complete cycles: bonus included, micro.

        Returns
        -------
        float or None
            1 + mean L over the cycles with censored_at null; None when there is no such cycle.
        """
        return self.counts_by_prompt().tau()

    def tau_macro(self) -> float | None:
        """Mean over prompts of each prompt's own tau: bonus included, macro.

        Returns
        -------
        float or None
            Prompts without a complete cycle are left out; None when no prompt has one.
        """
        counts = self.counts_by_prompt()
        some = counts.complete_cycles > 0
        if not some.any():
            return None
        return float(np.mean(1.0 + counts.total_accepted[some] / counts.complete_cycles[some]))
