from __future__ import annotations

import numpy as np
import pytest

import gumiho_theory.theorem.montecarlo as montecarlo
from gumiho_theory import InputError
from gumiho_theory.theorem.cases import Cases
from gumiho_theory.theorem.montecarlo import sample_cases, sample_cycles


@pytest.mark.parametrize("depth", [2, 3, 5, 10, 20])
def test_no_admissible_case_loses(depth):
    report = sample_cases(depth, 20_000, 0)
    assert report.violations == 0
    assert report.worst is not None
    assert report.worst.gain >= 0
    assert 0 < report.suspects < 20_000


def test_no_case_of_two_positions_loses_in_any_order():
    assert sample_cases(2, 50_000, 3, any_order=True).violations == 0


@pytest.mark.parametrize("depth", [3, 4, 7])
def test_cases_in_any_order_are_found_to_lose(depth):
    report = sample_cases(depth, 50_000, 0, any_order=True)
    assert report.violations > 0
    assert report.worst is not None
    assert report.worst.gain < 0
    assert sum(report.worst.improved) == sum(report.worst.original)


def test_a_million_cases_of_seven_positions_in_one_go():
    report = sample_cases(7, 1_000_000, 0)
    assert (report.cases, report.violations) == (1_000_000, 0)


def test_float_noise_is_no_violation(monkeypatch):
    # Equal rates, the first raised to 1 at the cost of the second: the gain falls to 0 as D grows, far below rounding.
    rates = np.repeat(np.arange(500_000, 700_000, 1000)[:, None], 80, axis=1)
    improved = rates.copy()
    improved[:, 0] = 1_000_000
    improved[:, 1] = 2 * rates[:, 1] - 1_000_000
    noisy = Cases(rates, improved, np.ones(200, dtype=np.int64), 1_000_000)
    assert (noisy.gain() < 0).sum() > 20
    monkeypatch.setattr(montecarlo, "random_cases", lambda *_: noisy)
    report = sample_cases(80, 200, 0)
    assert report.suspects > 150
    assert report.violations == 0
    assert report.worst is not None
    assert report.worst.gain > 0


def test_a_loss_below_what_float64_can_clear_is_a_violation(monkeypatch):
    original = np.array([[1, 750_001, 249_999, 1_000_000]])
    improved = np.array([[1, 750_002, 249_998, 1_000_000]])
    losing = Cases(original, improved, np.array([2]), 1_000_000)
    assert abs(losing.gain()[0]) < 1e-12
    monkeypatch.setattr(montecarlo, "random_cases", lambda *_: losing)
    report = sample_cases(4, 1, 0)
    assert (report.suspects, report.violations) == (1, 1)
    assert report.worst is not None
    assert -1e-11 < report.worst.gain < 0


def test_the_report_depends_on_the_seed_alone(monkeypatch):
    report = sample_cases(4, 3000, 5, any_order=True)
    assert report == sample_cases(4, 3000, 5, any_order=True)
    assert report != sample_cases(4, 3000, 6, any_order=True)
    monkeypatch.setattr(montecarlo, "_NUMBERS", 4000)
    chunked = sample_cases(4, 3000, 5, any_order=True)
    assert chunked.cases == 3000
    assert abs(chunked.violations - report.violations) < 40


def test_the_report_as_json_has_the_keys_that_scripts_read():
    data = sample_cases(3, 100, 0).to_json()
    assert {"cases", "violations", "worst"} <= set(data)
    assert {"original", "improved", "early", "gain"} <= set(data["worst"])


@pytest.mark.parametrize(
    ("arguments", "place"),
    [((1, 10, 0), "depth"), ((513, 10, 0), "depth"), ((3, 0, 0), "cases"), ((3, 10, -1), "seed")],
)
def test_arguments_out_of_range_are_refused(arguments, place):
    with pytest.raises(InputError, match=place):
        sample_cases(*arguments)


@pytest.mark.parametrize("rates", [[], [0.0, 0.5], [1.0, 1.0], [0.88, 0.89, 0.78, 0.45, 0.5, 0.45, 0.6]])
def test_sampled_cycles_agree_with_the_closed_form(rates):
    sampled = sample_cycles(rates, 300_000, 1, confidence=1 - 1e-9)
    assert sampled.inside
    assert sampled.low <= sampled.mean <= sampled.high
    assert sampled.high - sampled.low < 0.15


def test_bounds_are_tight_enough_to_find_a_wrong_rate():
    sampled = sample_cycles([0.9, 0.8, 0.7], 300_000, 2, confidence=0.999999)
    wrong = 0.88 + 0.88 * 0.8 + 0.88 * 0.8 * 0.7
    assert not sampled.low <= wrong <= sampled.high


def test_bounds_hold_as_often_as_they_say_from_few_cycles():
    held = [sample_cycles([0.97, 0.9, 0.8], 40, seed, confidence=0.8).inside for seed in range(400)]
    assert np.mean(held) >= 0.8


def test_few_cycles_give_wide_bounds_and_more_give_narrow_ones():
    few, many = (sample_cycles([0.5, 0.5], n, 0) for n in (10, 100_000))
    assert (few.low, few.high) == (0.0, 2.0)
    assert many.high - many.low < 0.05


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (([0.5], 0, 0), "cycles"),
        (([0.5], 5, -1), "seed"),
        (([0.5], 5, 0, 1.0), "confidence"),
        (([1.5], 5, 0), "conditional rates, position 1"),
        (([[0.5]], 5, 0), "rates"),
    ],
)
def test_cycles_of_bad_arguments_are_refused(arguments, place):
    with pytest.raises(InputError, match=place):
        sample_cycles(*arguments)
