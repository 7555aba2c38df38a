"""The paper's table drawn: what is drawn is the data."""

from __future__ import annotations

import numpy as np
import pytest

from gumiho_simulator.costs.paper import predict_ratios, published_speedups
from gumiho_simulator.figures.paper import plot_published, plot_ratio_predictions
from gumiho_theory import InputError


def test_the_published_table_is_drawn_by_target_and_temperature() -> None:
    table = published_speedups()
    ax = plot_published(table, "tau")
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(names) == table.groupby(["target", "temperature"]).ngroups
    means = table.groupby(["target", "temperature", "method"])["tau"].mean()
    drawn = [line.get_xdata()[0] for line in ax.lines if line.get_marker() in ("o", "D")]
    np.testing.assert_allclose(drawn, means.to_numpy())
    assert "macro" in ax.get_xlabel()
    with pytest.raises(InputError, match="quantity"):
        plot_published(table, "loss")


def test_ratios_are_drawn_as_predicted() -> None:
    one = predict_ratios(["vicuna-7b"])
    ax = plot_ratio_predictions([one, one])
    np.testing.assert_allclose(ax.lines[1].get_ydata(), np.tile(one.predicted, 2))
    np.testing.assert_allclose(ax.lines[1].get_xdata(), np.tile(one.published, 2))
