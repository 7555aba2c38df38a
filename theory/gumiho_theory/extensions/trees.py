r"""Is earlier worth more in a static draft tree? Three theorems and the counterexamples between them.

1. Relative accuracy: always. The worth of one per cent at depth d is sum_{j >= d} P(L >= j) (`depth_worth`), which
   cannot rise with d.

2. The accuracy of a head, with the split among its candidates fixed: the early-token theorem holds in full, for every
   tree. Let r_v = theta_d s_v, with theta_d the accuracy of the head of depth d (counting all of its candidates) and
   s_v >= 0 the share of node v, siblings' shares summing to at most 1. Then E[L] = sum_d c_d theta_1 ... theta_d,
   where c_d is the sum over the nodes at depth d of the product of shares along their path. Shares sum to at most 1, so
   1 >= c_1 >= c_2 >= ...; hence E[L] = sum_K (c_K - c_{K+1}) E_K, with E_K the expected accepted length of the chain
   theta_1, ..., theta_K. Every E_K inherits the hypothesis of the theorem; cut off at K, the change raises at least as
   much as it lowers, and E_K falls with no raise left out: so no E_K falls.

3. The accuracy of one rank k at depth d, the same amount for all nodes of that rank there, when rates depend on depth
   and rank alone and do not rise with depth (rho_{d,k} >= rho_{d+1,k} for every k): it holds in trees closed under
   deletion, where taking any one candidate out of a path (and moving up what is below it) leads to another path of the
   tree. Chains and complete trees are, and so is every best-first tree of such rates (`DraftTree.best_first`: the path
   gets no less probable and is met earlier). Proof: let G_d be the worth of rank k at depth d and p a path with
   rank k at depth b > a. Deleting p_a leads to a path with rank k at depth b - 1. Its other rates are no smaller than
   those of p, but rho_{a,p_a} is gone; for one target path, these add up to at most 1. So G_b <= G_{b-1}, and since
   they add up to at most 1 also with zeta added to rho_{a,k}, G_b <= G_{b-1} <= ... <= G_a also holds when G_b is
   taken after the raise: moving any amount zeta of rank k from depth b to a < b, all rates staying possible, changes
   E[L] by zeta (G_a - G_b|raised) >= 0.

Not so beyond: `LOPSIDED` breaks 3 in a tree that is not closed, with the same rates at every depth; `CROWDED` breaks
the hope that rates which descend along every path would do for single nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

from gumiho_theory.drafts.node_rates import read_node_rates
from gumiho_theory.drafts.tree import DraftTree
from gumiho_theory.errors import InputError
from gumiho_theory.extensions.worth import depth_survival, node_rates
from gumiho_theory.theorem.check import Hypothesis, hypothesis_form
from gumiho_theory.theorem.exact import Change, dot
from gumiho_theory.types import AnyArray

STATEMENTS = {
    "a tree of heads": r"\mathbb{E}[L] = \sum_{d} c_d \, \theta_1 \cdots \theta_d,"
    r" \quad 1 \geq c_1 \geq c_2 \geq \dots",
    "early heads": r"\theta \to \theta' \ \text{as in the theorem} \ \Rightarrow\ \mathbb{E}_{\theta'}[L] \geq"
    r" \mathbb{E}_{\theta}[L] \ \text{in every tree}",
    "early ranks": r"\rho_{d,k} \geq \rho_{d+1,k} \ \Rightarrow\ "
    r"\frac{\partial \mathbb{E}[L]}{\partial \rho_{d,k}}"
    r" \geq \frac{\partial \mathbb{E}[L]}{\partial \rho_{d+1,k}} \ \text{in trees closed under deletion}",
    "one node and its parent": r"\frac{\partial \mathbb{E}[L]}{\partial r_a}"
    r" \geq \frac{\partial \mathbb{E}[L]}{\partial r_b}"
    r" \Leftrightarrow (r_a - r_b) W_b \leq 1 + \sum_{c \neq b} r_c W_c \quad (R_{\mathrm{parent}(a)} > 0)",
}
"""LaTeX of the statements."""


def depth_weights(tree: DraftTree, shares: Any) -> AnyArray:
    """Return c_d [D], 0 to 1, never rising: E[L] = sum_d c_d theta_1 ... theta_d when node v has the rate theta_d s_v.

    The shares s_v [N], what part of its head's accuracy falls to each node, obey the same rules as node rates.
    """
    return depth_survival(tree, shares)


@dataclass(frozen=True)
class TreeCheck:
    """What the theorem says about a change of the heads of a tree, and what it does.

    Attributes
    ----------
    hypothesis : {"descending", "dominated"} or None
        Form that the original accuracies satisfy; with one of them E[L] cannot fall, in any tree.
    expected_original, expected_improved : Fraction
        E[L] before and after; no bonus token.
    """

    hypothesis: Hypothesis | None
    expected_original: Fraction
    expected_improved: Fraction

    @property
    def gain(self) -> Fraction:
        """E[L] after less before."""
        return self.expected_improved - self.expected_original


def check_tree(tree: DraftTree, shares: Any, original: Any, improved: Any, early: int) -> TreeCheck:
    """Check the early-token theorem on the heads of a static tree (theorem 2 of this module), exactly.

    Parameters
    ----------
    tree : DraftTree
        D deep.
    shares : array_like [N]
        s_v as in `depth_weights`; a float is taken as the binary number that it is.
    original, improved, early
        theta_d before and after, and the number of early depths, for `gumiho_theory.theorem.exact.Change.read`.

    Raises
    ------
    InputError
        When the change is not admissible (see `gumiho_theory.theorem.exact.Change.read`) or does not fit the tree.
    """
    change = Change.read(original, improved, early)
    if len(change.original) != tree.depth:
        raise InputError("original", f"{len(change.original)} accuracies", f"{tree.depth}, one a depth of the tree")
    fractions = np.vectorize(Fraction, otypes=[object])(read_node_rates(tree.parents, shares))
    # Floats may sum to a hair above 1, which exactly is too much: the tolerance was theirs, so it is scaled away.
    sums = np.zeros(tree.n_nodes, dtype=object)
    np.add.at(sums, tree.parents[1:], fractions[1:])
    fractions[1:] = [f / max(1, sums[p]) for f, p in zip(fractions[1:], tree.parents[1:], strict=True)]
    weights = depth_weights(tree, fractions)
    before, after = (dot(weights, accumulate(theta, mul)) for theta in (change.original, change.improved))
    return TreeCheck(hypothesis_form(change.original, early)[0], before, after)


def missing_deletions(tree: DraftTree) -> tuple[tuple[int, ...], ...]:
    """Return the paths of ranks that a tree lacks to be closed under deletion, sorted; none when it is closed.

    A tree is closed when every path with one candidate taken out (those below it moving up) is a path of the tree.
    Only what single deletions from the tree's own paths lead to is listed.
    """
    paths = {tuple(int(tree.ranks[node]) for node in tree.path_to(v)[1:]) for v in range(tree.n_nodes)}
    shorter = {path[:i] + path[i + 1 :] for path in paths for i in range(len(path))}
    return tuple(sorted(shorter - paths, key=lambda path: (len(path), path)))


def move_between_depths(
    tree: DraftTree, rank_rates: Any, source: int, destination: int, amount: Any, rank: int = 1
) -> AnyArray:
    """Return node rates [N] after `amount` of one rank's accuracy has moved from depth `source` to `destination`.

    `rank_rates` (array_like [D, R]): Rates by depth and rank; exact when a Fraction is among them. `source`,
    `destination`: Depths b and a, from 1. `amount`: zeta. `rank`: 1-based rank whose rate changes at all of its nodes.
    Raises InputError: When a depth or rank is not in the table, or the rates are not possible after the move.
    """
    table = np.array(rank_rates, dtype=object)
    if table.ndim != 2 or not all(1 <= depth <= len(table) for depth in (source, destination)):
        raise InputError("source, destination", f"{source}, {destination}", "depths of the table of rates")
    if not 1 <= rank <= table.shape[1]:
        raise InputError("rank", rank, f"1 to {table.shape[1]}")
    table[source - 1, rank - 1] -= amount
    table[destination - 1, rank - 1] += amount
    return node_rates(tree, table)


@dataclass(frozen=True)
class TreeExample:
    """A change of node rates in a tree, exact, in which accuracy moves from a later depth to an earlier one and loses.

    Attributes
    ----------
    tree : DraftTree
    original, improved : tuple of Fraction [N]
        Node rates before and after; 1 at the root.
    says : str
        What it shows.
    """

    tree: DraftTree
    original: tuple[Fraction, ...]
    improved: tuple[Fraction, ...]
    says: str

    @property
    def gain(self) -> Fraction:
        """E[L] after less before."""
        after, before = (sum(depth_survival(self.tree, list(r)), Fraction()) for r in (self.improved, self.original))
        return after - before


_TREE = DraftTree.from_rank_paths([[1], [2], [2, 1], [2, 1, 1], [2, 1, 2], [2, 1, 1, 1]])
_TABLE = [[Fraction(49, 100), Fraction(1, 2)]] * 4
LOPSIDED = TreeExample(
    _TREE,
    tuple(node_rates(_TREE, _TABLE)),
    tuple(move_between_depths(_TREE, _TABLE, source=2, destination=1, amount=Fraction(1, 100))),
    "one rank's accuracy, moved from depth 2 to depth 1, loses in a tree that is not closed under deletion, "
    "although the rates are the same at every depth: all that the tree has below depth 1 hangs on rank 2 there",
)

_THIRD = Fraction(1, 3)
CROWDED = TreeExample(
    DraftTree.from_rank_paths([[1], [1, 1], [1, 1, 1], [1, 1, 2], [1, 1, 3]]),
    (Fraction(1), Fraction(9, 10), _THIRD, _THIRD, _THIRD, _THIRD),
    (Fraction(1), Fraction(1), _THIRD - Fraction(1, 10), _THIRD, _THIRD, _THIRD),
    "rates descend along every path, and moving 1/10 from a node to its own parent still loses: the node has "
    "three children that between them are always right, which no node of a descending chain has",
)
