"""Forecasts from published points: the bars on published sweeps, always numbers, flagged beyond the last."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_simulator.forecasting.published import forecast_points, learnt_power, parse_points, published_curves
from gumiho_theory import InputError


def beyond(last: int) -> tuple[dict[int, list[float]], list[bool], list[float]]:
    """Score every published sweep, left out of the learning: errors by length, inside, relative widths."""
    errors: dict[int, list[float]] = {}
    inside, widths = [], []
    curves = published_curves()
    for index, curve in enumerate(curves):
        points = {length: value for length, value in curve.items() if length <= last}
        asked = [length for length in curve if length > last]
        others = [other for place, other in enumerate(curves) if place != index]
        for length, made in zip(asked, forecast_points(points, asked, others), strict=True):
            errors.setdefault(length, []).append(abs(made.tau / curve[length] - 1))  # type: ignore[operator]
            inside.append(made.lo <= curve[length] <= made.hi)  # type: ignore[operator]
            widths.append((made.hi - made.lo) / curve[length])  # type: ignore[operator]
    return errors, inside, widths


def test_published_sweeps_left_out_of_the_learning_are_forecast_from_their_first_three_lengths() -> None:
    """The bars: median error 2 % at length 5 and 5 % at 8, four in five inside intervals of 35 % of tau at most."""
    errors, inside, widths = beyond(3)
    assert np.median(errors[5]) <= 0.02
    assert np.median(errors[8]) <= 0.05
    assert np.mean(inside) >= 0.8
    assert np.mean(widths) <= 0.35
    assert len(inside) == 35


def test_gains_fade_faster_than_the_last_two_say_on_average() -> None:
    middle, half = learnt_power(3, published_curves())
    assert 0 < middle < 0.5
    assert half > middle


def test_an_interval_from_few_points_is_wider() -> None:
    points = {1: 1.8, 2: 2.4, 3: 2.85}
    widths = []
    for last in (1, 2, 3):
        made = forecast_points({k: v for k, v in points.items() if k <= last}, [6])[0]
        widths.append(made.hi - made.lo)  # type: ignore[operator]
    assert widths == sorted(widths, reverse=True)


def test_too_few_sweeps_to_learn_from_are_refused() -> None:
    with pytest.raises(InputError, match="published curves"):
        forecast_points({1: 1.8}, [4], [{1: 1.8, 2: 2.3, 3: 2.6}])


def test_published_points_come_back_and_gaps_are_interpolated_between_their_neighbours() -> None:
    two, three, four = forecast_points({2: 2.4, 4: 3.0}, [2, 3, 4])
    assert (two.tau, four.tau) == (2.4, 3.0)
    assert 2.7 <= three.tau < 3.0
    assert three.supported
    assert three.note == "interpolated"


@settings(deadline=None)  # the first draw learns the prior
@given(
    st.dictionaries(st.integers(1, 9), st.floats(0, 1), min_size=1, max_size=9),
    st.lists(st.integers(0, 30), min_size=1, max_size=5),
)
def test_every_answer_is_numbers_in_range_however_noisy_the_points(
    shares: dict[int, float], lengths: list[int]
) -> None:
    for made in forecast_points({k: 1 + share * k for k, share in shares.items()}, lengths):
        length = int(made.structure.removeprefix("chain:"))
        for value in (made.tau, made.lo, made.hi):
            assert value is not None
            assert math.isfinite(value)
        assert made.tau >= 1 - 1e-9
        assert made.lo <= made.hi <= length + 1


def test_limits_widen_with_every_position_beyond_the_last_point() -> None:
    made = forecast_points({1: 1.8, 2: 2.4, 3: 2.8}, [3, 4, 6, 8])
    widths = [(one.hi - one.lo) / one.tau for one in made]  # type: ignore[operator]
    assert widths == sorted(widths)
    assert widths[0] < widths[1]


def test_a_curve_that_stopped_rising_is_continued_flat() -> None:
    assert forecast_points({1: 1.8, 2: 2.4, 3: 2.3}, [6])[0].tau == pytest.approx(2.3)


@pytest.mark.parametrize("text", ["", "1", "0:1", "1:1.5,1:1.6", "1:2.5", "2:0.5", "1:x", "999:2", "1:nan"])
def test_points_that_cannot_be_are_refused_by_their_number(text: str) -> None:
    with pytest.raises(InputError, match="--tau-by-length, point"):
        parse_points(text)
