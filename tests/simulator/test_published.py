"""Forecasts from published points: exact on geometric curves, always numbers, flagged beyond the last."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_simulator.published import forecast_points, parse_points
from gumiho_theory import InputError


def geometric(rate: float, length: int) -> float:
    return sum(rate**i for i in range(length + 1))


@given(st.floats(0.05, 0.99), st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True))
def test_a_geometric_curve_is_continued_exactly_from_points_in_a_row_or_from_one(
    rate: float, lengths: list[int]
) -> None:
    for known in (range(1, max(lengths) + 1), [max(lengths)]):
        points = {k: geometric(rate, k) for k in known}
        made = forecast_points(points, [max(lengths) + 4])[0]
        assert made.tau == pytest.approx(geometric(rate, max(lengths) + 4), rel=1e-6)
        assert not made.supported


def test_published_points_come_back_and_gaps_are_interpolated_between_their_neighbours() -> None:
    two, three, four = forecast_points({2: 2.4, 4: 3.0}, [2, 3, 4])
    assert (two.tau, four.tau) == (2.4, 3.0)
    assert 2.7 <= three.tau < 3.0
    assert three.supported
    assert three.note == "interpolated"


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
