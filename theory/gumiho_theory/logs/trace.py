"""The cycle trace: one row a cycle, its conventions, and what is counted from it.

Units: seconds. Token positions are 0-based indices into the sequence; draft positions, depths and ranks are
1-based; cycles and turns count from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gumiho_theory.logs.columns import TRACE_SCHEMA
from gumiho_theory.logs.counts import AcceptanceCounts
from gumiho_theory.logs.rows import RowLog
from gumiho_theory.logs.schema import group_codes, reject
from gumiho_theory.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace(RowLog):
    """One row a cycle, held by column: the columns of `RowLog` (C = N, the cycles) and those below.

    Parameters
    ----------
    cycle : int array [C]
        In row order the cycles of one (prompt_id, turn) count 0, 1, 2, ...
    nodes, accepted, committed : int array [C]
        Tokens verified (root included); accepted length L (no bonus, before any cut of the output); tokens added
        to the output.
    censored_at : int array [C]
        Depth beyond which acceptance is unknown, -1 for null (L known in full). An accepted EOS at depth e
        is written accepted = censored_at = e; a draft shrunk by the end of the context has
        censored_at = drafted.
    draft_seconds, verify_seconds, other_seconds : float array [C]
        nan where not measured.
    expected_accepted : float array [C]
        Accepted length (no bonus) that the drafter's own scores promised: the sum of a dynamic tree's path
        probabilities, calibrated where provenance says so; nan = null (other structures).

    Notes
    -----
    Position i is at risk in a cycle when accepted >= i - 1, drafted >= i, and censored_at is null or >= i
    (a discrete survival time with right censoring; see `at_risk`). ``rank``, ``q_draft`` and ``p_target`` are of the
    target's token along the true continuation and stand only where the position was at risk; a rank of 0 there: the
    token was not among the candidates. The provenance holds versions, arguments, models, structure, device, seed.
    """

    schema = TRACE_SCHEMA
    _log = "trace"
    _row = "cycle"

    cycle: IntArray
    nodes: IntArray
    accepted: IntArray
    committed: IntArray
    censored_at: IntArray
    draft_seconds: FloatArray
    verify_seconds: FloatArray
    other_seconds: FloatArray
    expected_accepted: FloatArray

    def _check_rows(self) -> None:
        super()._check_rows()
        for name in ("accepted", "committed"):
            reject(getattr(self, name) < 0, name, getattr(self, name), "at least 0")
        reject(self.accepted > self.drafted, "accepted", self.accepted, "at most drafted")
        reject(self.nodes <= self.drafted, "nodes", self.nodes, "at least drafted + 1 (the root counts)")
        reject(self.committed > self.accepted + 1, "committed", self.committed, "at most accepted + 1")
        outside = (self.censored_at < self.accepted) | (self.censored_at > self.drafted)
        wanted = "null, or from accepted to drafted"
        reject(~self.complete & outside, "censored_at", self.censored_at, wanted)
        for name in ("draft_seconds", "verify_seconds", "other_seconds", "expected_accepted"):
            values, unit = getattr(self, name), self.schema.column(name).unit
            good = np.isnan(values) | ((values >= 0) & np.isfinite(values))
            reject(~good, name, values, f"{'seconds' if unit == 's' else unit} of at least 0, or null")

    def _check_order(self, order: IntArray, same: BoolArray) -> None:
        index = np.arange(len(order))
        first = index.copy()
        first[1:][same] = 0
        bad = np.zeros(len(order), dtype=bool)
        bad[order] = self.cycle[order] != index - np.maximum.accumulate(first)
        reject(bad, "cycle", self.cycle, "0, 1, 2, ... within a prompt_id and turn")
        super()._check_order(order, same)

    def _unknown(self) -> tuple[BoolArray, str]:
        return ~self.at_risk(), "null where the position was not at risk"

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
