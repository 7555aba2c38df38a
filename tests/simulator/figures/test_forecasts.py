"""Forecasts drawn: what is drawn is the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gumiho_simulator.figures.forecasts import plot_forecasts, plot_length_laws, plot_residuals
from gumiho_simulator.forecasting.intervals import Interval
from gumiho_simulator.forecasting.published import forecast_points
from gumiho_simulator.forecasting.tau import Forecast
from gumiho_theory import InputError


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
