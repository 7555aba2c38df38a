"""Rates, lengths and times: what is drawn is the data."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from gumiho_simulator.figures.rates import plot_cycle_time, plot_length_distribution, plot_rates
from gumiho_simulator.forecasting.intervals import Interval, pmf_intervals, rate_intervals
from gumiho_simulator.forecasting.judged import lengths_by_prompt
from gumiho_theory import Trace


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_rates_are_drawn_with_their_intervals(trace: Trace) -> None:
    conditional, survival = rate_intervals(trace.counts_by_prompt(), np.random.default_rng(0))
    ax = plot_rates(conditional, survival)
    drawn = ax.containers[0]
    np.testing.assert_allclose(drawn[0].get_ydata(), conditional.estimate)
    segments = drawn[2][0].get_segments()
    np.testing.assert_allclose([s[:, 1] for s in segments], np.stack([conditional.low, conditional.high], 1))
    assert "draft position" in ax.get_xlabel()
    assert "conditional" in ax.get_legend().get_texts()[0].get_text()


def test_positions_without_an_interval_are_drawn_without_one() -> None:
    nothing = np.full(2, np.nan)
    rates = Interval(np.array([0.5, np.nan]), nothing, nothing)
    ax = plot_rates(rates, rates)
    ax.figure.canvas.draw()
    heights = [np.ptp(s[:, 1]) for s in ax.containers[0][2][0].get_segments() if s.size]
    assert heights == [0.0]


def test_lengths_are_drawn_forecast_beside_measured(trace: Trace) -> None:
    measured = pmf_intervals(lengths_by_prompt(trace, 7), np.random.default_rng(0), n_resamples=200)
    ax = plot_length_distribution([0.5, 0.5], measured)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], measured.estimate)
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), [0.5, 0.5])


def test_a_cycle_s_parts_lie_end_to_end_beside_plain_decoding() -> None:
    ax = plot_cycle_time({"draft": (2, 1.9, 2.1), "verify": (3, np.nan, np.nan)}, 1.5, 4.0)
    spans = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    assert spans == [(0, 2), (2, 3), (0, 1.5), (0, 6.0)]
    assert texts(ax) == ["5.00 ms", "1.50 ms", "6.00 ms"]
    assert "milliseconds" in ax.get_xlabel()
    assert len(plot_cycle_time({"draft": (2, 1, 3)}, None, None).patches) == 1
