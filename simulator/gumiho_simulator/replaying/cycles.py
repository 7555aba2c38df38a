"""What another draft structure would have had accepted, cycle by cycle, from an every-position log: no model, no fit.

The target's text does not depend on what is drafted, so a cycle that starts at a place of it accepts what the drafter's
candidates behind that place hold of it. For a chain or a static tree that is told by the rank of the true token at each
depth behind the true prefix; for a dynamic tree by the accepted length that the log holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.forecasting.intervals import tau_interval
from gumiho_simulator.forecasting.results import Row, Rows
from gumiho_simulator.replaying.static_trees import in_sample_note
from gumiho_theory import AcceptanceCounts, ChainStructure, EveryPositionLog, InputError, StaticTree, Structure
from gumiho_theory.logs.schema import group_codes
from gumiho_theory.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class ReplayedCycles:
    """The cycles of a run of `structure` that did not have to be made, in the order of the log's prompts and turns.

    Arrays are [C]: the row of the log that each starts at; its accepted length L (no bonus); whether it is complete, L
    known in full to a trace (neither was a stop id accepted nor the draft cut by the end of the context); and whether
    it is tied, L hanging on which of several equally probable candidates the drafter had taken first.
    """

    structure: Structure
    row: IntArray
    accepted: IntArray
    complete: BoolArray
    tied: BoolArray

    def counts(self, log: EveryPositionLog) -> AcceptanceCounts:
        """Sum the cycles by prompt of the log they were replayed from, without positions."""
        prompt = group_codes(log.prompt_id)[self.row]

        def by_prompt(values: IntArray | BoolArray) -> IntArray:
            return np.bincount(prompt, weights=values, minlength=len(log.prompts)).astype(np.int64)

        return AcceptanceCounts(
            groups=log.prompts,
            cycles=by_prompt(np.ones_like(self.row)),
            total_accepted=by_prompt(np.where(self.complete, self.accepted, 0)),
            complete_cycles=by_prompt(self.complete),
            clusters="prompts",
        )


@dataclass(frozen=True)
class Replay(Row):
    """One structure replayed.

    Parameters
    ----------
    tau, lo, hi
        Mean accepted length over complete cycles (bonus included, micro) and its 95 % limits, prompts resampled; None
        without a complete cycle, or with fewer than two prompts that hold one.
    cycles, censored_cycles
        All cycles, and those that are not complete.
    exact, note
        Whether the cycles are those of a real run of the structure; otherwise the note says what is open. It says what
        the result rests on, or is None.
    """

    structure: str
    tau: float | None
    lo: float | None
    hi: float | None
    cycles: int
    censored_cycles: int
    exact: bool
    note: str | None


def replay(log: EveryPositionLog, structures: Sequence[Structure | str], seed: int = 0) -> Rows[Replay]:
    """Replay structures on the texts of an every-position log, in order; raises as `replay_cycles` does.

    Parameters
    ----------
    structures
        Chains and static trees no deeper than the log, and dynamic trees among the log's own structures.
    seed
        Seed of the resampling.
    """
    return Rows(_replay(log, structure, seed) for structure in structures)


def _replay(log: EveryPositionLog, structure: Structure | str, seed: int) -> Replay:
    cycles = replay_cycles(log, structure)
    counts = cycles.counts(log)
    lo, hi = tau_interval(counts, np.random.default_rng(seed)) or (None, None)
    tied, notes = int(cycles.tied.sum()), []
    if log.provenance["temperature"]:
        notes.append("given the logged text, which was drawn")
    known = in_sample_note(cycles.structure, log) if isinstance(cycles.structure, StaticTree) else None
    notes += [known] if known else []
    if tied:
        notes.append(f"{tied} cycles hang on candidates of equal probability")
    return Replay(
        structure=str(cycles.structure),
        tau=counts.tau(),
        lo=lo,
        hi=hi,
        cycles=len(cycles.row),
        censored_cycles=int((~cycles.complete).sum()),
        exact=not tied,
        note="; ".join(notes) or None,
    )


def replay_cycles(log: EveryPositionLog, structure: Structure | str) -> ReplayedCycles:
    """Return the cycles that a run of one structure would have had: each starts where the one before ended.

    They are those of `gumiho decode` with the log's settings, up to candidates whose probabilities differ by no more
    than the rounding of drafting one by one and many at once. Ties are seen among the candidates that the log holds
    (``top_q``); a structure that is among the log's own is read off it and needs no such clause.

    InputError for a structure deeper than the log or a dynamic tree that the log does not hold; candidates that were
    drawn, so that text and acceptance hang together; or a log that lacks what tells where its outputs end.
    """
    asked = Structure.parse(structure) if isinstance(structure, str) else structure
    deepest = _check_replayable(log, asked)
    logged = str(StaticTree(asked.paths) if isinstance(asked, StaticTree) else asked) in log.structures
    layout = _layout(log)
    # numba starts slowly: only who replays waits for it.
    from gumiho_simulator.replaying.kernel import walk_by_length, walk_by_rank

    if logged:
        by_row = log.accepted_by(asked)
        bad = (by_row < 0) | (by_row > deepest)
        if bad.any():
            row = int(bad.argmax())
            place, found = f"row {row}, column accepted, structure {asked}", int(by_row[row])
            raise InputError(place, "null" if found < 0 else found, f"a length of 0 to {deepest}")
        rows, accepted, tied = walk_by_length(layout.order, layout.first, layout.end, np.ascontiguousarray(by_row))
    elif isinstance(asked, ChainStructure | StaticTree):
        nodes = (*_children(asked.paths), _subtrees(asked.paths), deepest)
        rows, accepted, tied = walk_by_rank(layout.order, layout.first, layout.end, log.rank, layout.equals, *nodes)
    else:
        known = ", ".join(log.structures) or "none"
        wanted = f"a chain, a static tree, or one of the log's own structures: {known}"
        raise InputError("structure", str(asked), wanted)
    complete = (log.drafted[rows] >= deepest) & ~stop_accepted(log, rows, accepted)
    return ReplayedCycles(asked, rows, accepted, complete, tied)


def stop_accepted(log: EveryPositionLog, rows: IntArray, accepted: IntArray) -> BoolArray:
    """Tell whether each cycle [C] accepts a stop id; behind one there is no text, so it is the last accepted."""
    last = log.true_token[rows, np.maximum(accepted - 1, 0)]
    stops: BoolArray = (accepted > 0) & np.isin(last, np.array(log.provenance["stop_ids"], dtype=np.int64))
    return stops


def _check_replayable(log: EveryPositionLog, structure: Structure) -> int:
    """Refuse what cannot be replayed; return the structure's depth."""
    if structure.depth is None:
        raise InputError("structure", str(structure), "one of settled depth")
    if not 1 <= structure.depth <= log.depth:
        wanted = f"1 to {log.depth}, as deep as the log"
        raise InputError(f"structure {structure}", f"depth {structure.depth}", wanted)
    for name in ("stop_reason", "true_token", "rank"):
        if name in log.missing:
            raise InputError(f"log, column {name}", "no such column", "a log as gumiho decode writes it")
    facts = log.provenance
    temperature, candidates, stop_ids = (facts.get(name) for name in ("temperature", "candidates", "stop_ids"))
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not temperature >= 0:
        raise InputError("log, provenance, temperature", repr(temperature), "a number of at least 0")
    if temperature and candidates != "top":
        wanted = "'top' at a temperature above 0: drawn candidates and the text that they led to hang together"
        raise InputError("log, provenance, candidates", repr(candidates), wanted)
    if not isinstance(stop_ids, list) or not all(isinstance(t, int) and 0 <= t < 2**31 for t in stop_ids):
        raise InputError("log, provenance, stop_ids", repr(stop_ids), "a list of token ids")
    return structure.depth


def _children(paths: Sequence[tuple[int, ...]]) -> tuple[IntArray, IntArray]:
    """Return where each node's children begin [M + 2], and the ranks [M] of all nodes but the root, parents in order.

    Paths ordered by depth and then by path, as structures keep them, have siblings side by side in their parents'
    order, so that a node's place is its number less one.
    """
    number = {path: node for node, path in enumerate([(), *paths])}
    parents = np.array([number[path[:-1]] for path in paths], dtype=np.int64)
    starts = np.searchsorted(parents, np.arange(len(paths) + 2))
    return starts.astype(np.int64), np.array([path[-1] for path in paths], dtype=np.int64)


def _subtrees(paths: Sequence[tuple[int, ...]]) -> IntArray:
    """Return for the root and each node a number, equal where what stands behind two is the same; last: for no node."""
    below: dict[tuple[int, ...], list[tuple[int, int]]] = {path: [] for path in [(), *paths]}
    seen: dict[tuple[tuple[int, int], ...], int] = {}
    number = {}
    for path in [*reversed(paths), ()]:  # children before their parents
        number[path] = seen.setdefault(tuple(below[path]), len(seen))
        if path:
            below[path[:-1]].append((path[-1], number[path]))
    return np.array([*(number[path] for path in [(), *paths]), -1], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where a log's outputs begin and end, whatever is replayed; see `walk_by_rank`."""

    order: IntArray
    first: IntArray
    end: IntArray
    equals: NDArray[np.uint16]


# A log is laid out once, however many structures are replayed on it; logs compare by identity and do not change.
_LAYOUTS: WeakKeyDictionary[EveryPositionLog, _Layout] = WeakKeyDictionary()


def _layout(log: EveryPositionLog) -> _Layout:
    if log not in _LAYOUTS:
        _LAYOUTS[log] = _lay_out(log)
    return _LAYOUTS[log]


def _lay_out(log: EveryPositionLog) -> _Layout:
    output = group_codes(log.prompt_id, log.turn)
    order = np.argsort(output, kind="stable")
    first = np.flatnonzero(np.diff(output[order], prepend=-1))
    last = np.append(first[1:], log.n_rows) - 1
    gap = np.flatnonzero((np.diff(log.position[order]) != 1) & (np.diff(output[order]) == 0))
    if len(gap):
        row = order[gap[0] + 1]
        raise InputError(f"row {row}, column position", log.position[row], "each position of an output, in turn")
    reason = log.stop_reason[order[last]]
    unknown = np.array([value is None for value in reason], dtype=bool)
    if unknown.any():
        row = order[last[unknown.argmax()]]
        raise InputError(f"row {row}, column stop_reason", "null", "why the output ended, on its last row")
    # A rank counts the strictly better ones, so equally probable candidates share the first of their ranks.
    equals = np.zeros(log.rank.shape, dtype=np.uint16)
    for candidate in range(log.top_k):
        equals += log.top_q[:, :, candidate] == log.q_draft
    # From the last token of an output no cycle starts; after a stop id that token has no row.
    return _Layout(order, first, last + (reason == "eos"), equals)
