"""A draft tree drawn so that it can be read: the accepted path whole, the likeliest of the rest beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gumiho_simulator.figures.axes import GREEN, MUTED, new_axes
from gumiho_theory import DraftTree, InputError
from gumiho_theory.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST_LABEL = 8
_COLUMN, _ROW = 1.42, 0.36  # inches a depth and a leaf take


def plot_draft_tree(
    tree: DraftTree,
    labels: Sequence[str],
    accepted: Iterable[int] = (),
    q_draft: FloatArray | None = None,
    ax: Axes | None = None,
    max_nodes: int = 30,
) -> Axes:
    """Draw a draft tree from left to right, with the accepted path in colour.

    Parameters
    ----------
    tree
        The tree of N nodes, root included.
    labels
        N token texts, the root's (the last verified token) first.
    accepted
        Indices of the accepted nodes; the root is drawn as one of them.
    q_draft : ndarray [N], optional
        Draft probability of each node given its parent, written after its token; the root's is ignored.
    max_nodes
        How many nodes to draw: the accepted path, and then those of highest q_draft along their path
        (earliest first without q_draft); a node says how many of its descendants were left out.

    Raises
    ------
    InputError
        `labels`, `q_draft` or `accepted` do not fit the tree.
    """
    from matplotlib.patches import FancyBboxPatch

    on_path = {0, *accepted}
    if len(labels) != tree.n_nodes:
        raise InputError("labels", len(labels), f"{tree.n_nodes}, one a node")
    if q_draft is not None and len(q_draft) != tree.n_nodes:
        raise InputError("q_draft", len(q_draft), f"{tree.n_nodes}, one a node")
    if not on_path <= set(range(tree.n_nodes)):
        raise InputError("accepted nodes", sorted(on_path), f"indices below {tree.n_nodes}")
    shown = kept_nodes(tree, on_path, q_draft, max_nodes)
    height, n_rows = _rows(tree, shown, on_path)
    depth = int(tree.depths[shown].max())
    ax = ax or new_axes(*tree_figure_size(tree, accepted, q_draft, max_nodes))

    hidden = _hidden_below(tree, shown)
    for node in shown:
        good = node in on_path
        x, y = float(tree.depths[node]), height[node]
        if node:
            parent = int(tree.parents[node])
            start, end = tree.depths[parent] + 0.36, x - 0.36
            middle = (start + end) / 2
            ax.plot(
                [start, middle, middle, end],
                [height[parent], height[parent], y, y],
                color=GREEN if good else MUTED,
                linewidth=2.6 if good else 0.9,
                alpha=1.0 if good else 0.55,
                solid_capstyle="round",
                solid_joinstyle="round",
                zorder=2 if good else 1,
            )
        colour, shape = (GREEN if good else MUTED), "round,pad=0,rounding_size=0.1"
        box = partial(FancyBboxPatch, (x - 0.36, y - 0.36), 0.72, 0.72, boxstyle=shape)
        ax.add_patch(box(facecolor=GREEN if good else "none", alpha=0.28 if good else 1.0, edgecolor="none", zorder=0))
        ax.add_patch(box(facecolor="none", edgecolor=colour, linewidth=1.6 if good else 0.7, zorder=3))
        chance = "" if q_draft is None or node == 0 else f"{q_draft[node]:.2f}".removeprefix("0")
        ax.text(
            x - (0.31 if chance else 0.0),
            y,
            token_text(labels[node]),
            ha="left" if chance else "center",
            va="center_baseline",
            fontsize=9,
            fontweight="bold" if good else "normal",
            zorder=4,
        )
        ax.text(x + 0.33, y, chance, ha="right", va="center_baseline", fontsize=7, color=MUTED, zorder=4)
        if hidden[node]:
            ax.text(x + 0.39, y - 0.27, f"+{hidden[node]}", ha="left", va="center", fontsize=7, color=MUTED)
    for level in range(depth + 1):
        ax.text(level, -1.0, str(level or "root"), ha="center", va="center", fontsize=9, color=MUTED)
    ax.text(-0.36, -1.75, "draft position", ha="left", va="center", fontsize=9, color=MUTED)
    ax.set_xlim(-0.5, depth + 0.62)
    ax.set_ylim(n_rows - 0.4, -2.1)
    ax.set_axis_off()
    return ax


def kept_nodes(tree: DraftTree, on_path: set[int], q_draft: FloatArray | None, max_nodes: int) -> list[int]:
    """Choose the nodes to draw: the accepted path and the best others whose parents are drawn too.

    `tree`: The tree. `on_path`: Nodes to keep whatever happens, root included. `q_draft` (ndarray [N]): Draft
    probabilities given the parent. `max_nodes`: Number of nodes to keep, if the path is not longer. Returns ascending
    node indices; every node's parent is among them.
    """
    score = np.zeros(tree.n_nodes)
    for node in range(1, tree.n_nodes):
        chance = 1.0 if q_draft is None else max(float(q_draft[node]), 1e-30)
        score[node] = score[tree.parents[node]] + np.log(chance)
    # Scores never rise along a path, and a stable sort keeps a parent before its equal child.
    best = np.argsort(-score, kind="stable").tolist()
    keep = {ancestor for node in on_path for ancestor in np.flatnonzero(tree.ancestor_mask[node]).tolist()}
    for node in best:
        if len(keep) >= max_nodes:
            break
        keep.add(node)
    return sorted(keep)


def token_text(text: str) -> str:
    """Make a token visible in at most eight characters: signs for white space, the middle of long ones left out."""
    shown = text.replace("\r", "").replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣")
    shown = "".join(c if c.isprintable() else "�" for c in shown) or "∅"
    if len(shown) > _LONGEST_LABEL:
        shown = shown[: _LONGEST_LABEL - 3] + "…" + shown[-2:]
    # A dollar sign would start mathematical typesetting.
    return shown.replace("$", r"\$")


def tree_figure_size(
    tree: DraftTree, accepted: Iterable[int] = (), q_draft: FloatArray | None = None, max_nodes: int = 30
) -> tuple[float, float]:
    """Return width and height, in inches, at which `plot_draft_tree` of the same arguments is readable."""
    on_path = {0, *accepted}
    shown = kept_nodes(tree, on_path, q_draft, max_nodes)
    _, n_rows = _rows(tree, shown, on_path)
    return _COLUMN * (int(tree.depths[shown].max()) + 1.12), _ROW * (n_rows + 1.9)


def _rows(tree: DraftTree, shown: list[int], on_path: set[int]) -> tuple[dict[int, float], int]:
    """Place leaves on rows of their own, and a parent on its first child's row, the accepted child first."""
    children: dict[int, list[int]] = {node: [] for node in shown}
    for node in shown[1:]:
        children[int(tree.parents[node])].append(node)
    rows: dict[int, float] = {}
    leaves = 0
    stack = [0]
    while stack:
        node = stack.pop()
        rows[node] = float(leaves)
        ordered = sorted(children[node], key=lambda child: (child not in on_path, child))
        if not ordered:
            leaves += 1
        stack.extend(reversed(ordered))
    return rows, leaves


def _hidden_below(tree: DraftTree, shown: list[int]) -> dict[int, int]:
    """Count, at each drawn node, the descendants left out below it whose nearest drawn ancestor it is."""
    drawn = set(shown)
    hidden = dict.fromkeys(shown, 0)
    for node in range(tree.n_nodes):
        if node not in drawn:
            ancestor = int(tree.parents[node])
            while ancestor not in drawn:
                ancestor = int(tree.parents[ancestor])
            hidden[ancestor] += 1
    return hidden
