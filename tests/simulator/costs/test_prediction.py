"""What rates give: closed forms against enumeration, undefined positions, the time of a cycle."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_simulator import Prediction, predict
from gumiho_theory import InputError


@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=50), min_size=1, max_size=6))
def test_predictions_equal_the_enumeration_of_accepted_lengths(rates: list[Fraction]) -> None:
    result = predict(rates, survival=False)
    alive, expected, pmf = Fraction(1), Fraction(0), []
    for rate in rates:
        pmf.append(float(alive * (1 - rate)))
        alive *= rate
        expected += alive
    np.testing.assert_allclose(result.pmf, [*pmf, float(alive)], atol=1e-12)
    assert result.tau == pytest.approx(1 + float(expected), abs=1e-12)
    for i in range(len(rates)):
        # tau is linear in each rate, so a difference quotient of any size is the derivative.
        ends = [
            1 + sum(math.prod([*rates[:i], end, *rates[i + 1 :]][:k]) for k in range(1, len(rates) + 1))
            for end in (0, 1)
        ]
        assert result.sensitivity[i] == pytest.approx(float(ends[1] - ends[0]), abs=1e-12)


@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=50), min_size=1, max_size=6))
def test_survival_rates_give_the_same_answer_as_conditional_ones(rates: list[Fraction]) -> None:
    direct = predict(rates, survival=False)
    products = [math.prod(rates[: i + 1]) for i in range(len(rates))]
    again = predict([Fraction(p) for p in products], survival=True)
    assert again.tau == pytest.approx(direct.tau, abs=1e-12)
    np.testing.assert_allclose(again.pmf, direct.pmf, atol=1e-12)
    known = np.isfinite(again.conditional)
    np.testing.assert_allclose(again.conditional[known], direct.conditional[known], atol=1e-12)


def test_what_a_survival_of_zero_leaves_unknown_is_undefined_not_invented() -> None:
    result = predict([0.5, 0, 0], survival=True)
    np.testing.assert_array_equal(result.conditional, [0.5, 0.0, np.nan])
    # The slope at the rate that is 0 depends on the rate after it; the others do not.
    np.testing.assert_array_equal(result.sensitivity, [1.0, np.nan, 0.0])
    assert result.tau == 1.5


def test_survival_rates_that_rise_are_refused() -> None:
    with pytest.raises(InputError):
        predict([0.5, 0.6], survival=True)


def test_a_rate_above_one_is_refused_with_its_position() -> None:
    with pytest.raises(InputError, match=r"position 2: found 1\.2"):
        predict([0.5, 1.2])


def timed(draft_ms: list[Fraction], serial: int) -> Prediction:
    rates = [Fraction(8, 10), Fraction(7, 10), Fraction(6, 10)]
    return predict(rates, draft_ms=draft_ms, verify_ms=Fraction(4), baseline_ms=Fraction(3), serial=serial)


def test_the_time_of_a_cycle_counts_serial_steps_and_one_parallel_pass() -> None:
    serial = timed([Fraction(1)], 2)
    assert (serial.serial_steps, serial.cycle_ms) == (3, 7.0)
    assert serial.speedup == pytest.approx(serial.tau * 3 / 7)
    both = timed([Fraction(1), Fraction(1, 2)], 2)
    assert (both.serial_steps, both.cycle_ms) == (2, 6.5)
    shallow = timed([Fraction(1), Fraction(1, 2)], 3)
    assert (shallow.serial_steps, shallow.cycle_ms) == (3, 7.0)


@pytest.mark.parametrize(
    ("draft_ms", "verify_ms", "baseline_ms", "place"),
    [
        ([1] * 3, 1, 1, "draft_ms: found 3 numbers"),
        ([], 1, 1, "draft_ms: found 0 numbers"),
        ([1], 1, 0, "baseline_ms"),
        ([0], 0, 1, "time of a cycle"),
        ([1], None, None, "times: found no verify_ms, baseline_ms"),
        (None, None, 1, "times: found no draft_ms, verify_ms"),
    ],
)
def test_times_of_zero_too_many_draft_times_and_times_alone_are_refused(
    draft_ms: Any, verify_ms: Any, baseline_ms: Any, place: str
) -> None:
    with pytest.raises(InputError, match=place):
        predict([0.8], draft_ms=draft_ms, verify_ms=verify_ms, baseline_ms=baseline_ms)


def test_what_is_unknown_is_null_or_left_out_of_the_json() -> None:
    assert predict([0.5, 0, 0], survival=True).to_json()["conditional"] == [0.5, 0.0, None]
    assert "speedup" not in predict([0.5]).to_json()
    assert timed([Fraction(1)], 2).to_json()["cycle_ms"] == 7.0
