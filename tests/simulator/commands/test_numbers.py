"""Rates from the command line: exact reading, closed forms, undefined positions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_simulator.commands.numbers import parse_numbers, predict_rates, predict_speed
from gumiho_theory import InputError


def test_decimals_and_fractions_are_read_exactly() -> None:
    assert parse_numbers("x", "0.81, 3/4,1,.5,0.3/0003") == [
        Fraction(81, 100),
        Fraction(3, 4),
        Fraction(1),
        Fraction(1, 2),
        Fraction(1, 10),
    ]


@pytest.mark.parametrize(
    "text", ["", "0.5,,0.5", "a", "1e5", "-0.1", "nan", "inf", "1/0", "0x1", "1_0", "٣", "0.5;0.4"]
)
def test_anything_else_is_refused_with_its_position(text: str) -> None:
    with pytest.raises(InputError, match=r"--rates, position \d: found"):
        parse_numbers("--rates", text)


def test_a_million_numbers_are_refused_without_reading_them() -> None:
    with pytest.raises(InputError, match="at most 512"):
        parse_numbers("--rates", ",".join(["0.5"] * 513))


def test_a_rate_above_one_is_refused_with_its_position() -> None:
    with pytest.raises(InputError, match=r"position 2: found 1\.2"):
        predict_rates(parse_numbers("--rates", "0.5,1.2"), survival=False)


@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=50), min_size=1, max_size=6))
def test_predictions_equal_the_enumeration_of_accepted_lengths(rates: list[Fraction]) -> None:
    result = predict_rates(rates, survival=False)
    alive, expected, pmf = Fraction(1), Fraction(0), []
    for rate in rates:
        pmf.append(float(alive * (1 - rate)))
        alive *= rate
        expected += alive
    np.testing.assert_allclose(result["pmf"], [*pmf, float(alive)], atol=1e-12)
    assert result["tau"] == pytest.approx(1 + float(expected), abs=1e-12)
    for i in range(len(rates)):
        # tau is linear in each rate, so a difference quotient of any size is the derivative.
        ends = [
            1 + sum(math.prod([*rates[:i], end, *rates[i + 1 :]][:k]) for k in range(1, len(rates) + 1))
            for end in (0, 1)
        ]
        assert result["sensitivity"][i] == pytest.approx(float(ends[1] - ends[0]), abs=1e-12)


@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=50), min_size=1, max_size=6))
def test_survival_rates_give_the_same_answer_as_conditional_ones(rates: list[Fraction]) -> None:
    direct = predict_rates(rates, survival=False)
    products = [math.prod(rates[: i + 1]) for i in range(len(rates))]
    again = predict_rates([Fraction(p) for p in products], survival=True)
    assert again["tau"] == pytest.approx(direct["tau"], abs=1e-12)
    np.testing.assert_allclose(again["pmf"], direct["pmf"], atol=1e-12)
    known = np.isfinite(again["conditional"])
    np.testing.assert_allclose(again["conditional"][known], direct["conditional"][known], atol=1e-12)


def test_what_a_survival_of_zero_leaves_unknown_is_undefined_not_invented() -> None:
    result = predict_rates(parse_numbers("--rates", "0.5,0,0"), survival=True)
    np.testing.assert_array_equal(result["conditional"], [0.5, 0.0, np.nan])
    # The slope at the rate that is 0 depends on the rate after it; the others do not.
    np.testing.assert_array_equal(result["sensitivity"], [1.0, np.nan, 0.0])
    assert result["tau"] == 1.5


def test_survival_rates_that_rise_are_refused() -> None:
    with pytest.raises(InputError):
        predict_rates(parse_numbers("--rates", "0.5,0.6"), survival=True)


def test_the_time_of_a_cycle_counts_serial_steps_and_one_parallel_pass() -> None:
    result = predict_rates(parse_numbers("--rates", "0.8,0.7,0.6"), survival=False)
    serial = predict_speed([Fraction(1)], Fraction(4), Fraction(3), 2, result)
    assert serial == {"serial_steps": 3, "cycle_ms": 7.0, "speedup": pytest.approx(result["tau"] * 3 / 7)}
    both = predict_speed([Fraction(1), Fraction(1, 2)], Fraction(4), Fraction(3), 2, result)
    assert (both["serial_steps"], both["cycle_ms"]) == (2, 6.5)
    shallow = predict_speed([Fraction(1), Fraction(1, 2)], Fraction(4), Fraction(3), 3, result)
    assert (shallow["serial_steps"], shallow["cycle_ms"]) == (3, 7.0)


def test_times_of_zero_and_too_many_draft_times_are_refused() -> None:
    result = predict_rates(parse_numbers("--rates", "0.8"), survival=False)
    with pytest.raises(InputError, match="3 numbers"):
        predict_speed([Fraction(1)] * 3, Fraction(1), Fraction(1), 2, result)
    with pytest.raises(InputError, match="baseline"):
        predict_speed([Fraction(1)], Fraction(1), Fraction(0), 2, result)
    with pytest.raises(InputError, match="time of a cycle"):
        predict_speed([Fraction(0)], Fraction(0), Fraction(1), 2, result)
