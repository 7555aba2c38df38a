"""The walk of a replay, compiled: from cycle to cycle, and in each from node to node as far as the text goes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.compiled import compiled

IntArray = NDArray[np.int64]


@compiled
def walk_by_rank(
    order: IntArray,
    first: IntArray,
    end: IntArray,
    rank: IntArray,
    equals: Any,
    starts: IntArray,
    ranks: IntArray,
    behind: IntArray,
    depth: int,
) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """Walk a tree given by rank paths.

    `order` (int array [N]): Rows of the log, output by output, in order of position. `first`, `end` (int array [O]):
    Place in `order` of each output's first row, and the place from which no cycle starts. `rank` (int array [N, D]):
    Rank of the true token; 0 = none. `equals` (int array [N, D]): Number of candidates as probable as the true token,
    itself counted; 0 where there is no such candidate. `starts` (int array [M + 2]): Where each node's children begin
    in `ranks`; the child at place c is node c + 1. Node 0 is the root. `ranks` (int array [M]): Rank of each node among
    its siblings. `behind` (int array [M + 2]): Number of what stands behind a node, equal for equal subtrees; the last
    for no node at all. `depth`: Deepest node. Returns rows, accepted, int array [C]. Returns tied, bool array [C]:
    Whether the length hangs on which of several equally probable candidates was drafted first.
    """
    n = order.size
    rows = np.empty(n, np.int64)
    lengths = np.empty(n, np.int64)
    ties = np.empty(n, np.bool_)
    nobody = behind[-1]
    made = 0
    for output in range(first.size):
        at = first[output]
        while at < end[output]:
            row = order[at]
            node = 0
            accepted = 0
            tied = False
            for i in range(depth):
                true = rank[row, i]
                if true <= 0:
                    break
                child = 0
                for place in range(starts[node], starts[node + 1]):
                    if ranks[place] == true:
                        child = place + 1
                        break
                alike = int(equals[row, i])
                if alike > 1:
                    here = behind[child] if child else nobody
                    for more in range(1, alike):
                        other = nobody
                        for place in range(starts[node], starts[node + 1]):
                            if ranks[place] == true + more:
                                other = behind[place + 1]
                                break
                        if other != here:
                            tied = True
                if not child:
                    break
                node = child
                accepted = i + 1
            rows[made] = row
            lengths[made] = accepted
            ties[made] = tied
            made += 1
            at += accepted + 1
    return rows[:made].copy(), lengths[:made].copy(), ties[:made].copy()


@compiled
def walk_by_length(
    order: IntArray, first: IntArray, end: IntArray, accepted: IntArray
) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """Walk by accepted lengths that are known for every row [N]; see `walk_by_rank`. No cycle is tied."""
    n = order.size
    rows = np.empty(n, np.int64)
    made = 0
    for output in range(first.size):
        at = first[output]
        while at < end[output]:
            rows[made] = order[at]
            at += accepted[order[at]] + 1
            made += 1
    rows = rows[:made].copy()
    return rows, accepted[rows], np.zeros(made, np.bool_)
