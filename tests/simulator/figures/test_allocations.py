"""An allocation search drawn: each quantity by split of the heads, with its limits."""

from __future__ import annotations

import numpy as np
import pytest

from gumiho_simulator.allocating.heads import Allocation, Allocations
from gumiho_simulator.figures.allocations import plot_by_split
from gumiho_theory import InputError


def test_a_quantity_is_drawn_by_split_with_its_limits_a_line_for_each_number_of_layers() -> None:
    rows = tuple(
        Allocation(serial, 7 - serial, layers, 8, 2.0 + serial, 1.5 + serial, 3.0 + serial, 0.001 * serial, 1.5)
        for layers in (1, 2)
        for serial in (3, 1)
    )
    ax = plot_by_split(Allocations(rows, rows[0], rows[:1]), "tau")
    one, two = ax.containers
    for drawn in (one, two):
        np.testing.assert_allclose(drawn[0].get_ydata(), [3.0, 5.0])
        np.testing.assert_allclose([s[:, 1] for s in drawn[2][0].get_segments()], [[2.5, 4.0], [4.5, 6.0]])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1 + 6", "3 + 4"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1 layer", "2 layers"]
    assert "bonus included" in ax.get_ylabel()
    times = plot_by_split(Allocations(rows, rows[0], rows[:1]), "cycle_seconds")
    np.testing.assert_allclose(times.containers[0][0].get_ydata(), [1.0, 3.0])
    with pytest.raises(InputError, match="quantity"):
        plot_by_split(Allocations(rows, rows[0], rows[:1]), "nodes")
