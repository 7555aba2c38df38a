"""A forecast beside its measurement: errors and interval scores by hand, and what a refusal leaves open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gumiho_simulator import Forecast
from gumiho_simulator.forecasting.judged import judge, lengths_by_prompt, sum_up
from gumiho_theory import Trace

MADE = Forecast("chain:3", "hmm", tau=2.2, lo=2.1, hi=2.4, supported=True, note="")


def test_measured_lengths_come_from_complete_cycles_alone(trace: Trace) -> None:
    table = lengths_by_prompt(trace, 7)
    assert table.sum() == trace.complete.sum()
    assert 1 + (table @ np.arange(8)).sum() / table.sum() == pytest.approx(trace.tau())


def test_errors_and_interval_scores_are_relative_to_the_measured_tau() -> None:
    row = judge(MADE, 2.0, np.array([0.01, 0.02, 0.03]))
    assert row.relative_error == pytest.approx(0.1)
    assert row.inside is False
    assert row.relative_width == pytest.approx(0.15)
    assert row.interval_score == pytest.approx((0.3 + 40 * 0.1) / 2)
    assert row.sampling_floor == pytest.approx(0.02)
    assert judge(MADE, 2.25, None).interval_score == pytest.approx(0.3 / 2.25)


def test_a_refusal_counts_as_refused_and_as_nothing_else() -> None:
    refused = judge(replace(MADE, tau=None, lo=None, hi=None), 2.0, np.array([0.5]))
    assert (refused.relative_error, refused.inside, refused.interval_score, refused.relative_width) == (None,) * 4
    both = sum_up([judge(MADE, 2.0, None), refused])
    assert (both.forecasts, both.refused, both.coverage) == (1, 1, 0.0)
    assert both.worst_abs_error == pytest.approx(0.1)
    assert both.sampling_floor is None  # the refused row's is nobody's floor
    assert set(refused.to_json()) == set(refused.columns)
