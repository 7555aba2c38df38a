"""The attention mask of a draft tree: which nodes each row of the verification may see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gumiho_simulator.figures.axes import BLUE, GREEN, MUTED, new_axes
from gumiho_simulator.figures.trees import token_text
from gumiho_theory import DraftTree, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_attention_mask(
    tree: DraftTree, labels: Sequence[str], accepted: Iterable[int] = (), ax: Axes | None = None
) -> Axes:
    """Draw which nodes each node attends to: its ancestors and itself, and all verified text, which is not drawn.

    Parameters
    ----------
    tree
        The tree of N nodes, root included.
    labels
        N token texts, the root's first.
    accepted
        Indices of the accepted nodes, whose rows are drawn in another colour; the root is one of them.

    Raises
    ------
    InputError
        `labels` or `accepted` do not fit the tree.
    """
    from matplotlib.colors import ListedColormap

    on_path = {0, *accepted}
    if len(labels) != tree.n_nodes:
        raise InputError("labels", len(labels), f"{tree.n_nodes}, one a node")
    if not on_path <= set(range(tree.n_nodes)):
        raise InputError("accepted nodes", sorted(on_path), f"indices below {tree.n_nodes}")
    side = 1.8 + 0.26 * tree.n_nodes
    ax = ax or new_axes(side, side)
    cells = tree.ancestor_mask.astype(np.int64)
    cells[sorted(on_path)] *= 2
    colours = ListedColormap(["#ffffff", BLUE, GREEN])
    ax.pcolormesh(cells, cmap=colours, vmin=0, vmax=2, edgecolors=MUTED, linewidth=0.3)
    ticks = np.arange(tree.n_nodes) + 0.5
    names = [token_text(label) for label in labels]
    ax.set_xticks(ticks, names, rotation=90, fontsize=8)
    ax.set_yticks(ticks, names, fontsize=8)
    for index in on_path:
        ax.get_yticklabels()[index].set_fontweight("bold")
    ax.set(xlabel="is seen (key)", ylabel="sees (query); accepted path in green")
    ax.invert_yaxis()
    ax.set_aspect("equal")
    ax.grid(False)
    ax.tick_params(length=0)
    return ax
