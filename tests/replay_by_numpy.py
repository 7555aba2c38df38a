"""The slow twin of the compiled replay: every row of a log at once, depth by depth, then the cycles side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.replaying.cycles import _subtrees
from gumiho_theory import ChainStructure, EveryPositionLog, StaticTree
from gumiho_theory.logs.schema import group_codes

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


def replay_by_numpy(log: EveryPositionLog, tree: ChainStructure | StaticTree) -> tuple[IntArray, IntArray, BoolArray]:
    """Return row, accepted length and tie of each cycle."""
    accepted, tied = _by_rank(log, tree.paths)
    rows = _walk(log, accepted)
    return rows, accepted[rows], tied[rows]


def _by_rank(log: EveryPositionLog, paths: Sequence[tuple[int, ...]]) -> tuple[IntArray, BoolArray]:
    """Return by row the accepted length of a tree given by rank paths, and whether it hangs on a tie."""
    number = {path: node for node, path in enumerate([(), *paths])}
    beyond = max(max(path) for path in paths) + 1  # a rank that no node has
    keys = np.array([number[path[:-1]] * (beyond + 1) + path[-1] for path in paths], dtype=np.int64)
    order = np.argsort(keys)

    def child(node: IntArray, rank: IntArray) -> IntArray:
        wanted = node * (beyond + 1) + np.minimum(rank, beyond)
        at = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
        return np.where(keys[order[at]] == wanted, order[at] + 1, -1)

    behind = _subtrees(paths)
    accepted, tied = np.zeros(log.n_rows, dtype=np.int64), np.zeros(log.n_rows, dtype=bool)
    rows, node = np.arange(log.n_rows), np.zeros(log.n_rows, dtype=np.int64)
    for depth in range(max(map(len, paths))):
        some = log.rank[rows, depth] > 0
        rows, node = rows[some], node[some]
        rank = log.rank[rows, depth]
        following = child(node, rank)
        # A rank counts the strictly better ones, so equally probable candidates share the first of their ranks.
        equals = (log.top_q[rows, depth] == log.q_draft[rows, depth, None]).sum(axis=1)
        for more in range(1, int(equals.max(initial=0))):
            tied[rows] |= (equals > more) & (behind[child(node, rank + more)] != behind[following])
        rows, node = rows[following >= 0], following[following >= 0]
        accepted[rows] = depth + 1
    return accepted, tied


def _walk(log: EveryPositionLog, accepted: IntArray) -> IntArray:
    """Return the rows that cycles start at: the first of each output, then the one behind what was accepted."""
    output = group_codes(log.prompt_id, log.turn)
    order = np.argsort(output, kind="stable")
    first = np.flatnonzero(np.diff(output[order], prepend=-1))
    last = np.append(first[1:], log.n_rows) - 1
    reason = log.stop_reason[order[last]]
    # From the last token of an output no cycle starts; after a stop id that token has no row.
    end = last + (reason == "eos")
    starts, at = [], first
    while len(at):
        at, end = at[at < end], end[at < end]
        starts.append(at)
        at = at + accepted[order[at]] + 1
    rows: IntArray = order[np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *starts]))]
    return rows
