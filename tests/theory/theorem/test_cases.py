from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gumiho_theory import InputError
from gumiho_theory.theorem.cases import Cases, random_cases, random_rates, rounding


def expected(rates: tuple[Fraction, ...]) -> Fraction:
    product, total = Fraction(1), Fraction(0)
    for rate in rates:
        product *= rate
        total += product
    return total


def draw(depth: int, cases: int = 2000, seed: int = 0, any_order: bool = False, grid: int = 1_000_000) -> Cases:
    return random_cases(depth, cases, np.random.default_rng(seed), any_order, grid)


@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 7, 12])
def test_every_case_conserves_mass_raises_early_rates_lowers_late_ones_and_stays_within_bounds(depth, any_order):
    cases = draw(depth, any_order=any_order, grid=1000)
    early = np.arange(depth) < cases.early[:, None]
    change = cases.improved - cases.original
    assert (change.sum(axis=1) == 0).all()
    assert (change[early] >= 0).all()
    assert (change[~early] <= 0).all()
    for rates in (cases.original, cases.improved):
        assert (rates >= 0).all()
        assert (rates <= 1000).all()
    assert set(cases.early.tolist()) == set(range(1, depth))


def test_admissible_cases_meet_one_form_of_the_hypothesis_and_both_forms_are_drawn():
    cases = draw(7)
    descending = 0
    for rates, early in zip(cases.original.tolist(), cases.early.tolist(), strict=True):
        assert min(rates[:early]) >= max(rates[early:])
        assert rates[early:] == sorted(rates[early:], reverse=True)
        descending += rates == sorted(rates, reverse=True)
    assert len(cases.original) / 2 <= descending < 0.9 * len(cases.original)


def test_any_order_draws_rates_outside_both_forms():
    cases = draw(7, any_order=True)
    early = np.arange(7) < cases.early[:, None]
    outside = np.where(early, cases.original, 2e6).min(axis=1) < np.where(early, -1, cases.original).max(axis=1)
    assert outside.mean() > 0.5


def test_changes_reach_the_corners():
    cases = draw(5, any_order=True, grid=100)
    early = np.arange(5) < cases.early[:, None]
    moved = cases.improved != cases.original
    assert (moved & early & (cases.improved == 100)).any(axis=1).mean() > 0.1
    assert (moved & ~early & (cases.improved == 0)).any(axis=1).mean() > 0.1
    assert (cases.mass() == 0).mean() < 0.2
    assert cases.mass().max() > 1.5


@pytest.mark.parametrize("grid", [100, 1_000_000])
def test_exact_gains_equal_rational_arithmetic_and_float_gains_lie_within_the_rounding(grid):
    cases = draw(9, 300, any_order=True, grid=grid)
    scaled = cases.exact_gain(np.arange(300))
    for row, (gain, inexact) in enumerate(zip(scaled, cases.gain(), strict=True)):
        case = cases.case(row)
        assert case.gain == Fraction(gain, grid**9) == expected(case.improved) - expected(case.original)
        assert abs(Fraction(inexact) - case.gain) <= rounding(9)


def test_a_case_as_json_can_be_typed_in_again():
    case = draw(4).case(7)
    data = case.to_json()
    assert tuple(Fraction(str(rate)) for rate in data["original"]) == case.original
    assert Fraction(data["gain_exact"]) == case.gain
    assert data["gain"] == float(case.gain)


def test_rates_of_every_kind_are_drawn():
    rates = random_rates(6, 3000, np.random.default_rng(1))
    assert ((rates % 250_000 == 0).all(axis=1) & (np.ptp(rates, axis=1) > 0)).mean() > 0.15
    assert (np.ptp(rates, axis=1) == 0).mean() > 0.15
    assert (rates.min(), rates.max()) == (0, 1_000_000)


@pytest.mark.parametrize("depth", [-1, 0, 1, 513])
def test_a_depth_without_early_and_late_positions_is_refused(depth):
    with pytest.raises(InputError, match="depth"):
        draw(depth)
