r"""What a node, a rank and a depth of a static draft tree are worth: E[L] of the tree and its derivatives.

With r_v the conditional rate of node v (see `gumiho_theory.drafts.node_rates`), R_v the product of the rates along the
path to v, and W_v = 1 + sum of r_c W_c over the children c of v,

    E[L] = sum of R_v over all nodes but the root,        dE[L]/dr_v = R_parent(v) W_v.

E[L] counts accepted draft tokens, no bonus. Whether an earlier depth is worth more than a later one depends on what is
changed; `gumiho_theory.extensions.trees` says when it is, and proves it.

Functions of a tree and `node_rates` take the conditional rate of each of its N nodes, array_like [N], floats or exact;
the root's is not used. They raise InputError when the rates are no such rates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gumiho_theory.drafts.node_rates import exact_or_float, reached, read_node_rates
from gumiho_theory.drafts.tree import DraftTree
from gumiho_theory.errors import InputError
from gumiho_theory.types import AnyArray, IntArray

STATEMENTS = {
    "expected accepted length of a tree": r"\mathbb{E}[L] = \sum_{v} R_v, \quad R_v = \prod_{u \leq v} r_u",
    "worth of a node": r"\frac{\partial \mathbb{E}[L]}{\partial r_v} = R_{\mathrm{parent}(v)} W_v,"
    r" \quad W_v = 1 + \sum_{c} r_c W_c",
    "worth of a depth": r"\frac{\partial \mathbb{E}[L]}{\partial \log \theta_d} = \sum_{j \geq d} P(L \geq j)",
    "worth of a rank": r"\frac{\partial \mathbb{E}[L]}{\partial \rho_{d,k}}"
    r" = \sum_{v \in (d,k)} R_{\mathrm{parent}(v)} W_v",
}
"""LaTeX of what is computed here."""


def node_rates(tree: DraftTree, rank_rates: Any) -> AnyArray:
    """Return the rate of every node when it depends on depth and rank alone.

    `tree`: N nodes, at most D deep, ranks at most R. `rank_rates` (array_like [D, R]): P(the candidate of rank k at
    depth d is right | its parent is right) at [d - 1, k - 1]. Returns array [N]: 1 at the root, whose rate nothing
    uses. Raises InputError: When the tree has a node that the table does not know, or the rates are no such
    probabilities.
    """
    table = exact_or_float(rank_rates, "rank rates")
    deepest, widest = tree.depth, int(tree.ranks.max())
    if table.ndim != 2 or table.shape[0] < deepest or table.shape[1] < widest:
        raise InputError("rank rates", f"shape {table.shape}", f"at least {deepest} depths x {widest} ranks")
    rates = np.ones(tree.n_nodes, dtype=table.dtype)
    rates[1:] = table[tree.depths[1:] - 1, tree.ranks[1:] - 1]
    return read_node_rates(tree.parents, rates)


def depth_survival(tree: DraftTree, node_rates: Any) -> AnyArray:
    """Survival rates P(L >= d), d = 1..D, [D], of a tree; they sum to E[L] (no bonus)."""
    probabilities = reached(tree.parents, read_node_rates(tree.parents, node_rates))
    survival = np.zeros(tree.depth, dtype=probabilities.dtype)
    np.add.at(survival, tree.depths[1:] - 1, probabilities[1:])
    return survival


def node_worth(tree: DraftTree, node_rates: Any) -> AnyArray:
    """Gradient dE[L]/dr_v by node, [N], 0 at the root; computed without dividing: zero rates are allowed."""
    rates = read_node_rates(tree.parents, node_rates)
    below = np.ones_like(rates)
    for node in range(tree.n_nodes - 1, 0, -1):
        below[tree.parents[node]] += rates[node] * below[node]
    worth = np.zeros_like(rates)
    worth[1:] = reached(tree.parents, rates)[tree.parents[1:]] * below[1:]
    return worth


def rank_worth(tree: DraftTree, node_rates: Any, rank: int = 1) -> AnyArray:
    """Gradient of E[L] in the accuracy of one rank at each depth: the same amount added at all of its nodes there.

    Returns
    -------
    array [D]
        0 at depths where the tree has no node of that rank.

    Raises
    ------
    InputError
        When the 1-based `rank` is below 1 too.
    """
    if rank < 1:
        raise InputError("rank", rank, "at least 1")
    worth = node_worth(tree, node_rates)
    sums = np.zeros(tree.depth, dtype=worth.dtype)
    some = tree.ranks == rank
    np.add.at(sums, tree.depths[some] - 1, worth[some])
    return sums


def depth_worth(tree: DraftTree, node_rates: Any) -> AnyArray:
    """Gradient of E[L] in the logarithm of a depth's rates, [D]: all of them raised by the same small factor.

    It is sum_{j >= d} P(L >= j), so it never rises with d, whatever the tree and its rates: one per cent of accuracy
    is worth at least as much at an earlier depth as at a later one.
    """
    worth: AnyArray = np.cumsum(depth_survival(tree, node_rates)[::-1])[::-1]
    return worth


def sample_accepted(
    tree: DraftTree, node_rates: npt.ArrayLike, cycles: int, generator: np.random.Generator
) -> IntArray:
    """Draw accepted lengths L (no bonus) of cycles, int [cycles]: each goes down from the root until no child is right.

    Raises InputError: When `cycles` is negative too.
    """
    if cycles < 0:
        raise InputError("cycles", cycles, "at least 0")
    rates = read_node_rates(tree.parents, node_rates).astype(np.float64)
    children: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    for node in range(1, tree.n_nodes):
        children[tree.parents[node]].append(node)
    length = np.zeros(cycles, dtype=np.int64)
    at = [(0, np.arange(cycles))]
    while at:
        node, here = at.pop()
        length[here] = tree.depths[node]
        # One draw says which child, or none, is the target's token: they exclude one another.
        edges = np.cumsum(rates[children[node]])
        picked = np.searchsorted(edges, generator.random(len(here)), side="right")
        at += [(child, here[picked == index]) for index, child in enumerate(children[node])]
    return length
