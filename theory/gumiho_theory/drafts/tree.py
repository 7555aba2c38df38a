"""Draft trees: topology, attention mask, expected accepted tokens, and the two ways trees are chosen."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gumiho_theory.drafts.node_rates import reached, read_node_rates
from gumiho_theory.errors import InputError
from gumiho_theory.types import BoolArray, FloatArray, IntArray

_SUM_TOLERANCE = 1e-9


def _integers(values: npt.ArrayLike, name: str) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(name, f"{array.ndim}-dimensional {array.dtype}", "a list of integers")
    return array.astype(np.int64)


def _check_parents(parents: IntArray) -> None:
    if len(parents) == 0 or parents[0] != -1:
        raise InputError("parents, node 0", "no root" if len(parents) == 0 else parents[0], "-1, the root")
    bad = (parents[1:] < 0) | (parents[1:] >= np.arange(1, len(parents)))
    if bad.any():
        node = int(bad.argmax()) + 1
        raise InputError(f"parents, node {node}", parents[node], f"an earlier node, 0 to {node - 1}")


@dataclass(frozen=True, eq=False)
class DraftTree:
    """A draft tree of N nodes; node 0 is the root, the last verified token.

    Parameters
    ----------
    parents : int array [N]
        Parent of each node; -1 for the root, and an earlier node for every other.
    ranks : int array [N], optional
        1-based rank of each node among the drafter's candidates at its parent, distinct between siblings;
        0 for the root. Left out: siblings are ranked by their order.

    Raises
    ------
    InputError
        When the arrays do not describe a tree.
    """

    parents: IntArray
    # Never None once built: a caller who reads ranks should not have to rule that out.
    ranks: IntArray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        parents = _integers(self.parents, "parents")
        _check_parents(parents)
        ranks = _order_of_siblings(parents) if self.ranks is None else _integers(self.ranks, "ranks")
        if len(ranks) != len(parents):
            raise InputError("ranks", f"{len(ranks)} values", f"{len(parents)}, one a node")
        bad = ranks < 1
        bad[0] = ranks[0] != 0
        if bad.any():
            node = int(bad.argmax())
            raise InputError(f"ranks, node {node}", ranks[node], "0 at the root, at least 1 elsewhere")
        if len(set(zip(parents.tolist(), ranks.tolist(), strict=True))) != len(parents):
            raise InputError("ranks", "siblings of equal rank", "distinct ranks among siblings")
        for name, array in (("parents", parents), ("ranks", ranks)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def chain(cls, length: int) -> DraftTree:
        """Return the tree of one path: the root and `length` draft tokens of rank 1."""
        if length < 0:
            raise InputError("chain length", length, "at least 0")
        return cls(np.arange(-1, length, dtype=np.int64))

    @classmethod
    def from_rank_paths(cls, paths: Iterable[Sequence[int]]) -> DraftTree:
        """Build a tree from its nodes' paths of 1-based sibling ranks, ``[[1], [2], [1, 1]]``.

        Nodes are ordered by depth, then by path. Every prefix of a path must be present.

        Raises
        ------
        InputError
            For an empty, repeated or ill-formed path, or a missing prefix.
        """
        nodes: dict[tuple[int, ...], int] = {(): 0}
        given = [tuple(path) for path in paths]
        for path in given:
            ranks = [isinstance(r, int | np.integer) and not isinstance(r, bool) and r >= 1 for r in path]
            if not path or not all(ranks):
                raise InputError("rank path", list(path), "ranks of at least 1")
        for path in sorted(given, key=lambda path: (len(path), path)):
            if path in nodes:
                raise InputError("rank path", list(path), "each path once")
            if path[:-1] not in nodes:
                raise InputError("rank path", list(path), f"its prefix {list(path[:-1])} among the paths")
            nodes[path] = len(nodes)
        parents = [-1 if not path else nodes[path[:-1]] for path in nodes]
        return cls(np.array(parents, dtype=np.int64), np.array([0, *(p[-1] for p in nodes if p)], dtype=np.int64))

    @classmethod
    def best_first(cls, rank_rates: npt.ArrayLike, total: int) -> DraftTree:
        """Return the tree of `total` nodes with the largest expected accepted length.

        A node's probability of being accepted is the product of the rates along its path, so the best tree
        is the `total` - 1 most probable paths; ties go to the shallower, then to the one met first.
        The first n nodes are themselves the best tree of n nodes.

        Parameters
        ----------
        rank_rates : array_like [D, R]
            P(the candidate of rank r at depth d is right | its parent is right) at [d - 1, r - 1]; each row
            sums to at most 1. Rates need not fall with rank.
        total : int
            Nodes, root included.

        Raises
        ------
        InputError
            For rates that are no such probabilities, or more nodes than D levels of R candidates have.
        """
        rates = _rank_rates(rank_rates)
        depth, width = rates.shape
        if total < 1:
            raise InputError("total", total, "at least 1 (the root counts)")
        # Descending rates let each level be opened one candidate at a time.
        order = np.argsort(-rates, axis=1, kind="stable")
        falling, names = np.take_along_axis(rates, order, axis=1).tolist(), (order + 1).tolist()
        parents, ranks = [-1], [0]
        # Path probability (negative), level, number, parent, choice, probability of the parent's path.
        heap: list[tuple[float, int, int, int, int, float]] = []
        pushed = 0

        def push(parent: int, level: int, choice: int, score: float) -> None:
            nonlocal pushed
            if level < depth and choice < width:
                heapq.heappush(heap, (-score * falling[level][choice], level, pushed, parent, choice, score))
                pushed += 1

        push(0, 0, 0, 1.0)
        while len(parents) < total:
            if not heap:
                raise InputError("total", total, f"at most {len(parents)} nodes ({depth} levels of {width})")
            negative, level, _, parent, choice, score = heapq.heappop(heap)
            parents.append(parent)
            ranks.append(names[level][choice])
            push(parent, level, choice + 1, score)
            push(len(parents) - 1, level + 1, 0, -negative)
        return cls(np.array(parents, dtype=np.int64), np.array(ranks, dtype=np.int64))

    @property
    def n_nodes(self) -> int:
        """Number of nodes N, root included."""
        return len(self.parents)

    @cached_property
    def depths(self) -> IntArray:
        """Int [N]: draft position of each node; 0 for the root."""
        depths = np.zeros(self.n_nodes, dtype=np.int64)
        for node in range(1, self.n_nodes):
            depths[node] = depths[self.parents[node]] + 1
        depths.setflags(write=False)
        return depths

    @property
    def depth(self) -> int:
        """Deepest draft position D; 0 for a lone root."""
        return int(self.depths.max())

    @cached_property
    def ancestor_mask(self) -> BoolArray:
        """Bool [N, N]: row i is True at i and its ancestors; the tree attention mask."""
        mask = np.eye(self.n_nodes, dtype=bool)
        for node in range(1, self.n_nodes):
            mask[node] |= mask[self.parents[node]]
        mask.setflags(write=False)
        return mask

    @cached_property
    def leaves(self) -> IntArray:
        """Int array: nodes without children, in ascending order."""
        leaves = np.setdiff1d(np.arange(self.n_nodes), self.parents)
        leaves.setflags(write=False)
        return leaves

    def path_to(self, node: int) -> list[int]:
        """Return the nodes from the root to `node`, both included."""
        if not 0 <= node < self.n_nodes:
            raise InputError("node", node, f"0 to {self.n_nodes - 1}")
        path = [int(node)]
        while path[-1] != 0:
            path.append(int(self.parents[path[-1]]))
        return path[::-1]

    def paths(self) -> list[list[int]]:
        """Return the root-to-leaf paths as lists of nodes, by leaf in ascending order."""
        return [self.path_to(int(leaf)) for leaf in self.leaves]

    def expected_accepted(self, node_rates: npt.ArrayLike) -> float:
        """Return the expected accepted length E[L] of the tree; no bonus token.

        Siblings are exclusive (at most one is the target's token), so E[L] is the sum over all nodes but the
        root of the product of the rates along the node's path.

        Parameters
        ----------
        node_rates : array_like [N]
            Conditional rate of each node, given that its parent is accepted. The root's is not used.

        Returns
        -------
        float

        Raises
        ------
        InputError
            When a rate lies outside [0, 1] or the children of one node sum to more than 1.
        """
        return float(reached(self.parents, read_node_rates(self.parents, node_rates))[1:].sum())


def _order_of_siblings(parents: IntArray) -> IntArray:
    seen: dict[int, int] = {}
    ranks = np.zeros(len(parents), dtype=np.int64)
    for node, parent in enumerate(parents.tolist()[1:], start=1):
        ranks[node] = seen[parent] = seen.get(parent, 0) + 1
    return ranks


def _rank_rates(values: npt.ArrayLike) -> FloatArray:
    rates = np.asarray(values, dtype=np.float64)
    if rates.ndim != 2:
        raise InputError("rank rates", f"{rates.ndim} dimensions", "a table, depths x ranks")
    bad = ~((rates >= 0) & (rates <= 1))
    if bad.any():
        depth, rank = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(f"rank rates, depth {depth + 1}, rank {rank + 1}", rates[depth, rank], "a rate in [0, 1]")
    sums = rates.sum(axis=1)
    if (sums > 1 + _SUM_TOLERANCE).any():
        depth = int(sums.argmax())
        raise InputError(f"rank rates, depth {depth + 1}", f"a sum of {sums[depth]}", "at most 1")
    return rates


def select_top(parents: npt.ArrayLike, scores: npt.ArrayLike, total: int) -> tuple[IntArray, IntArray]:
    """Re-rank a candidate tree as EAGLE-2 (arXiv 2406.16858) does: keep the root and the best other nodes.

    `parents` (int array [N]): -1 for the root at 0, an earlier node for every other. `scores` (float array [N]):
    Cumulative scores along the path (log-probabilities or probabilities), never rising from parent to child. The root's
    is not used. `total`: Nodes to keep, root included; all N when there are fewer. Returns kept, int array [min(total,
    N)]: Kept nodes, ascending. Ties keep the earlier node, so a parent is never cut while its child stays. Returns
    new_parents, int array [min(total, N)]: Their parents, numbered within `kept`; -1 for the root. Raises InputError:
    When the arrays do not describe a tree or a score is nan or rises along a path.
    """
    tree = _integers(parents, "parents")
    _check_parents(tree)
    values = np.array(scores, dtype=np.float64)
    if values.shape != tree.shape:
        raise InputError("scores", f"shape {values.shape}", f"{len(tree)} scores, one a node")
    if total < 1:
        raise InputError("total", total, "at least 1 (the root counts)")
    values[0] = np.inf
    bad = ~(values[1:] <= values[tree[1:]])
    if bad.any():
        node = int(bad.argmax()) + 1
        raise InputError(f"scores, node {node}", values[node], f"at most its parent's {values[tree[node]]}")
    kept = np.sort(np.argsort(-values, kind="stable")[:total])
    new_parents = np.searchsorted(kept, tree[kept])
    new_parents[0] = -1
    return kept, new_parents
