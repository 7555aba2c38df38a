"""The attention mask of a tree: ancestors are seen, accepted rows are marked."""

from __future__ import annotations

import numpy as np
import pytest

from gumiho_simulator.figures.masks import plot_attention_mask
from gumiho_theory import DraftTree, InputError


def test_a_mask_shows_ancestors_and_marks_the_accepted_rows() -> None:
    tree = DraftTree.from_rank_paths([[1], [2], [1, 1]])
    ax = plot_attention_mask(tree, ["a", "b", "c", "d"], accepted=[1])
    cells = np.asarray(ax.collections[0].get_array()).reshape(4, 4)
    np.testing.assert_array_equal(cells, [[2, 0, 0, 0], [2, 2, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c", "d"]
    for labels, accepted in ((["a"], [1]), (["a"] * 4, [7])):
        with pytest.raises(InputError):
            plot_attention_mask(tree, labels, accepted)
