"""Draft trees stay legible and connected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes

from gumiho_simulator.figures.trees import kept_nodes, plot_draft_tree, token_text, tree_figure_size
from gumiho_theory import DraftTree, InputError


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


@given(st.integers(1, 80), st.integers(1, 40), st.integers(0, 2**32))
def test_kept_nodes_hold_the_path_and_every_parent(n: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = DraftTree(np.array([-1, *(int(rng.integers(0, i)) for i in range(1, n))]))
    path = set(tree.path_to(int(rng.integers(0, n)))) | {0}
    for q in (None, rng.random(n)):
        kept = kept_nodes(tree, path, q, most)
        assert path <= set(kept)
        assert len(kept) == min(n, max(most, len(path)))
        assert all(int(tree.parents[node]) in kept for node in kept[1:])


def test_a_tree_of_sixty_nodes_is_pruned_and_says_how_many_are_hidden() -> None:
    tree = DraftTree.best_first(np.full((5, 6), [0.5, 0.2, 0.1, 0.08, 0.05, 0.03]), 60)
    q = np.full(60, 0.3)
    ax = plot_draft_tree(tree, [f"t{i}" for i in range(60)], [1], q)
    names = [text for text in texts(ax) if text.startswith("t")]
    hidden = [int(text[1:]) for text in texts(ax) if text.startswith("+")]
    assert len(names) == 30
    assert sum(hidden) == 30
    width, height = tree_figure_size(tree, [1], q)
    assert width < 12
    assert height < 15
    bold = [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"]
    assert bold == ["t0", "t1"]


def test_chains_and_lone_roots_are_drawn() -> None:
    assert "x" in texts(plot_draft_tree(DraftTree.chain(7), ["x"] * 8, range(1, 4)))
    assert "x" in texts(plot_draft_tree(DraftTree.chain(0), ["x"]))


def test_labels_and_nodes_that_do_not_fit_the_tree_are_refused() -> None:
    tree = DraftTree.chain(2)
    with pytest.raises(InputError, match="labels"):
        plot_draft_tree(tree, ["x"] * 2)
    with pytest.raises(InputError, match="q_draft"):
        plot_draft_tree(tree, ["x"] * 3, q_draft=np.ones(2))
    with pytest.raises(InputError, match="accepted"):
        plot_draft_tree(tree, ["x"] * 3, [3])


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" the", "␣the"),
        (":\n", ":⏎"),
        ("", "∅"),
        ("\x00", "�"),
        ("$x$", r"\$x\$"),
        ("abcdefghijkl", "abcde…kl"),
        (" \n  ", "␣⏎␣␣"),
    ],
)
def test_token_text_is_visible_and_short(token: str, shown: str) -> None:
    assert token_text(token) == shown
