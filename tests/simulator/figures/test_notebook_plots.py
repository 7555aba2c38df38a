"""Figures of forecasts, masks and the paper's table: what is drawn is the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot as plt

from gumiho_simulator.allocating.heads import Allocation, Allocations
from gumiho_simulator.costs.paper import predict_ratios, published_speedups
from gumiho_simulator.figures.allocations import plot_by_split
from gumiho_simulator.figures.forecasts import plot_forecasts, plot_length_laws, plot_residuals
from gumiho_simulator.figures.masks import plot_attention_mask
from gumiho_simulator.figures.paper import plot_published, plot_ratio_predictions
from gumiho_simulator.forecasting.forecasts import Forecast
from gumiho_simulator.forecasting.intervals import Interval
from gumiho_simulator.forecasting.published import forecast_points
from gumiho_theory import DraftTree, InputError


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


def some_forecasts() -> tuple[Forecast, ...]:
    return forecast_points({1: 1.8, 2: 2.4}, [1, 2, 4])


def test_laws_are_drawn_bar_by_bar() -> None:
    laws = {"short": [0.4, 0.6], "long": [0.2, 0.3, 0.5]}
    ax = plot_length_laws(laws)
    assert [bar.get_height() for bar in ax.patches] == [0.4, 0.6, 0.2, 0.3, 0.5]
    assert "bonus token not counted" in ax.get_xlabel()
    assert len({round(bar.get_x(), 9) for bar in ax.patches}) == 5  # none hides another


def test_forecasts_stand_over_their_structure_hollow_where_extrapolated() -> None:
    rows = some_forecasts()
    refused = replace(rows[0], tau=None, lo=None, hi=None)
    measured = {"chain:2": (2.4, 2.3, 2.5), "chain:4": (3.0, np.nan, np.nan)}
    ax = plot_forecasts({"points": rows, "refused": [refused]}, measured)
    first, second = ax.lines[0], ax.lines[1]
    assert (first.get_ydata()[0], second.get_ydata()[0]) == (2.4, 3.0)
    drawn = [bar[0] for bar in ax.containers]
    assert [(round(line.get_xdata()[0]), line.get_ydata()[0]) for line in drawn] == [(0, rows[1].tau), (1, rows[2].tau)]
    assert [line.get_markerfacecolor() == "white" for line in drawn] == [False, True]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["measured (95 %)", "points"]


def test_residuals_are_measured_less_modelled_with_the_measured_interval() -> None:
    measured = Interval(np.array([0.8, 0.6]), np.array([0.7, 0.5]), np.array([0.85, 0.7]))
    ax = plot_residuals(measured, {"flat": [0.7, 0.7]})
    drawn = ax.containers[0]
    np.testing.assert_allclose(drawn[0].get_ydata(), [0.1, -0.1])
    segments = [segment[:, 1] for segment in drawn[2][0].get_segments()]
    np.testing.assert_allclose(segments, [[0.0, 0.15], [-0.2, 0.0]])
    with pytest.raises(InputError, match="rates of deep"):
        plot_residuals(measured, {"deep": [0.7, 0.7, 0.7]})


def test_too_many_series_are_refused() -> None:
    with pytest.raises(InputError, match="1 to 6"):
        plot_length_laws({str(i): [1.0] for i in range(7)})


def test_a_mask_shows_ancestors_and_marks_the_accepted_rows() -> None:
    tree = DraftTree.from_rank_paths([[1], [2], [1, 1]])
    ax = plot_attention_mask(tree, ["a", "b", "c", "d"], accepted=[1])
    cells = np.asarray(ax.collections[0].get_array()).reshape(4, 4)
    np.testing.assert_array_equal(cells, [[2, 0, 0, 0], [2, 2, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c", "d"]
    for labels, accepted in ((["a"], [1]), (["a"] * 4, [7])):
        with pytest.raises(InputError):
            plot_attention_mask(tree, labels, accepted)


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
