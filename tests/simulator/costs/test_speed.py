"""Speed-ups: chains of every length, break-even, and limits where the times are uncertain too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gumiho_simulator.costs.speed import chain_speeds, speedup_limits, with_speed
from gumiho_simulator.forecasting.published import forecast_points
from gumiho_theory import CostProfile, InputError, tau

PROFILE = CostProfile(
    target="t",
    drafter="d",
    device="cpu",
    dtype="float32",
    baseline_seconds=0.010,
    verify_nodes=(1, 16),
    verify_seconds=(0.010, 0.013),
    draft_serial_seconds=0.004,
    draft_parallel_seconds=0.0,
    serial_steps=7,
    other_seconds=0.0,
)
RATES = (0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)


def test_every_length_has_the_speed_of_its_own_tau_and_cycle() -> None:
    speeds = chain_speeds(RATES, PROFILE)
    for length in range(1, 8):
        expected = PROFILE.speedup(float(tau(RATES[:length])), length, length + 1)
        assert speeds.speedup[length - 1] == pytest.approx(expected)
    assert speeds.best == int(np.argmax(speeds.speedup)) + 1 == 2
    assert speeds.break_even == 5
    assert speeds.speedup[4] >= 1 > speeds.speedup[5]


def test_where_no_length_pays_none_is_best() -> None:
    slow = chain_speeds((0.1, 0.1), PROFILE)
    assert (slow.best, slow.break_even) == (0, 0)


def test_rates_that_are_none_and_chains_beyond_the_profile_are_refused() -> None:
    with pytest.raises(InputError):
        chain_speeds((1.2,), PROFILE)
    with pytest.raises(InputError, match="rates"):
        chain_speeds((), PROFILE)
    with pytest.raises(InputError, match="as measured"):
        chain_speeds((0.9,) * 16, PROFILE)


def test_forecasts_name_the_fastest_and_the_break_even_length() -> None:
    points = {length: 1.0 + float(np.cumprod(RATES)[:length].sum()) for length in range(1, 8)}
    result = with_speed(forecast_points(points, range(1, 8)), PROFILE)
    assert (result.best, result.break_even) == ("chain:2", "chain:5")
    slow = with_speed(forecast_points({1: 1.1}, [1]), PROFILE)
    assert (slow.best, slow.break_even) == ("chain:1", None)


def test_uncertain_times_widen_a_speed_up_by_the_sum_of_squares() -> None:
    exact = speedup_limits(2.0, 3.0, 2.7, 3.6, 0.0)
    assert exact == pytest.approx((1.8, 2.4))
    low, high = speedup_limits(2.0, 3.0, 2.7, 3.6, 0.05)
    assert np.log(2.0 / low) == pytest.approx(np.hypot(np.log(3.0 / 2.7), 1.959964 * 0.05))
    assert np.log(high / 2.0) == pytest.approx(np.hypot(np.log(1.2), 1.959964 * 0.05))
    sure, unsure = (
        with_speed(forecast_points({3: 2.6}, [3]), profile).rows[0]
        for profile in (PROFILE, replace(PROFILE, relative_error=0.2))
    )
    assert sure["speedup"] == unsure["speedup"]
    assert unsure["speedup_lo"] < sure["speedup_lo"] < sure["speedup_hi"] < unsure["speedup_hi"]


def test_independent_errors_of_tau_and_time_are_covered_as_promised() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        seen = 3.0 * np.exp(rng.normal(0, 0.04))
        low, high = (seen * np.exp(sign * 1.959964 * 0.04) for sign in (-1, 1))
        time = np.exp(rng.normal(0, 0.06))
        limits = speedup_limits(seen / time, seen, low, high, 0.06)
        inside += limits[0] <= 3.0 <= limits[1]
    assert inside / 2000 == pytest.approx(0.95, abs=0.015)
