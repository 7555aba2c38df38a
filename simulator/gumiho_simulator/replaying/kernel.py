"""The walk of a replay, compiled: from cycle to cycle, and in each from node to node as far as the text goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gumiho_simulator.compiled import compiled
from gumiho_theory.types import BoolArray, IntArray


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
) -> tuple[IntArray, IntArray, BoolArray]:
    """Walk a tree given by rank paths; return rows, accepted lengths and ties of the C cycles.

    `order` [N] are the log's rows, output by output, in order of position; `first` and `end` [O] each output's first
    place in it, and the place from which no cycle starts. `rank` [N, D] is the true token's, 0 = none; `equals` [N, D]
    counts the candidates as probable as it, itself too, 0 where there is none such.

    Of the tree, no deeper than `depth`, node 0 is the root; `starts` [M + 2] is where each node's children begin in
    `ranks` [M], their ranks among siblings; the child at place c is node c + 1. `behind` [M + 2] numbers what stands
    behind a node, equal for equal subtrees; the last is for no node at all. A length is tied where it hangs on which of
    several equally probable candidates was drafted first.
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
) -> tuple[IntArray, IntArray, BoolArray]:
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
