from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gumiho_theory as theory
from gumiho_theory import InputError
from gumiho_theory.rates import pmf_to_conditional, pmf_to_survival

rates = st.lists(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1, allow_subnormal=False)), max_size=10)
batches = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 5)), elements=st.floats(0, 1)
)


def enumerated_pmf(p: list[float]) -> list[float]:
    """P(L = l) by listing every outcome of D independent acceptances, reached or not."""
    pmf = [0.0] * (len(p) + 1)
    for outcome in itertools.product([True, False], repeat=len(p)):
        weight = 1.0
        for rate, accepted in zip(p, outcome, strict=True):
            weight *= rate if accepted else 1 - rate
        pmf[[*outcome, False].index(False)] += weight
    return pmf


@given(rates)
def test_closed_forms_equal_enumeration_of_all_outcomes(p: list[float]) -> None:
    pmf = enumerated_pmf(p)
    mean = sum(length * weight for length, weight in enumerate(pmf))
    tails = [sum(pmf[i:]) for i in range(1, len(pmf))]
    assert np.allclose(theory.length_pmf(p), pmf, atol=1e-12)
    assert np.allclose(theory.conditional_to_survival(p), tails, atol=1e-12)
    assert np.isclose(theory.expected_accepted(p), mean, atol=1e-12)
    assert np.isclose(theory.tau(p), 1 + mean, atol=1e-12)


def test_closed_forms_equal_monte_carlo() -> None:
    p = np.array([0.9, 0.6, 0.75, 0.3])
    n = 200_000
    draws = np.random.default_rng(5).random((n, 4)) < p
    length = np.cumprod(draws, axis=1).sum(axis=1)
    pmf = np.bincount(length, minlength=5) / n
    expected = theory.length_pmf(p)
    assert np.all(np.abs(pmf - expected) < 5 * np.sqrt(expected * (1 - expected) / n))
    assert abs(1 + length.mean() - theory.tau(p)) < 5 * length.std() / np.sqrt(n)


@given(rates)
def test_pmf_is_a_distribution_and_never_negative(p: list[float]) -> None:
    pmf = theory.length_pmf(p)
    assert (pmf >= 0).all()
    assert np.isclose(pmf.sum(), 1.0, atol=1e-12)


@given(st.lists(st.floats(0.01, 1), max_size=8))
def test_every_conversion_has_its_way_back(p: list[float]) -> None:
    survival = theory.conditional_to_survival(p)
    pmf = theory.length_pmf(p)
    assert np.allclose(theory.survival_to_conditional(survival), p, rtol=1e-9)
    assert np.allclose(pmf_to_survival(pmf), survival, atol=1e-12)
    assert np.allclose(pmf_to_conditional(pmf), p, rtol=1e-6)


def test_conditional_rates_after_survival_zero_are_undefined() -> None:
    with np.errstate(all="raise"):
        assert np.array_equal(theory.survival_to_conditional([0.5, 0.0, 0.0]), [0.5, 0.0, np.nan], equal_nan=True)
        assert np.array_equal(pmf_to_conditional([0.5, 0.5, 0.0, 0.0]), [0.5, 0.0, np.nan], equal_nan=True)


@given(rates.filter(bool))
def test_sensitivity_is_the_exact_slope_of_tau_in_each_rate(p: list[float]) -> None:
    # tau is linear in each rate, so the slope is the difference between its ends at 1 and 0.
    slopes = [theory.tau([*p[:i], 1.0, *p[i + 1 :]]) - theory.tau([*p[:i], 0.0, *p[i + 1 :]]) for i in range(len(p))]
    assert np.allclose(theory.sensitivity(p), slopes, atol=1e-12)


def test_sensitivity_at_zero_rates_is_finite() -> None:
    assert np.array_equal(theory.sensitivity([0.0, 0.0, 0.5]), [1.0, 0.0, 0.0])


@given(batches)
def test_batches_equal_row_by_row(p: np.ndarray) -> None:
    functions = [
        theory.conditional_to_survival,
        theory.length_pmf,
        theory.expected_accepted,
        theory.tau,
        theory.sensitivity,
    ]
    for function in functions:
        whole = function(p)
        for index in np.ndindex(p.shape[:-1]):
            assert np.array_equal(whole[index], function(p[index]))


def test_no_draft_positions_leave_the_bonus_token_alone() -> None:
    assert theory.tau([]) == 1.0
    assert theory.expected_accepted([]) == 0.0
    assert np.array_equal(theory.length_pmf([]), [1.0])
    assert theory.sensitivity([]).shape == theory.conditional_to_survival([]).shape == (0,)
    assert pmf_to_survival([1.0]).shape == (0,)
    assert np.array_equal(theory.tau(np.zeros((3, 0))), np.ones(3))


def test_raising_an_early_rate_can_lose_when_rates_are_not_descending() -> None:
    before = theory.expected_accepted([0.81, 0.16, 0.99])
    after = theory.expected_accepted([0.97, 0.0, 0.99])
    assert np.isclose(before - after, 0.0979, atol=1e-4)


def test_fractions_and_integers_are_numbers_too() -> None:
    assert theory.tau([Fraction(1, 2), 1]) == 2.0
    assert theory.tau(np.array([0.5, 1.0], dtype=np.float32)) == 2.0


@pytest.mark.parametrize("bad", [1.5, -0.1, float("nan"), float("inf")])
def test_a_rate_outside_the_unit_interval_is_named_by_its_position(bad: float) -> None:
    for function in (theory.tau, theory.length_pmf, theory.sensitivity, theory.survival_to_conditional):
        with pytest.raises(InputError, match=r"position 3: found .*, wanted a rate in \[0, 1\]"):
            function([0.9, 0.8, bad])
    with pytest.raises(InputError, match=r"rates\[1\], position 2"):
        theory.tau([[0.9, 0.8], [0.9, bad]])


def test_rising_survival_rates_are_refused() -> None:
    with pytest.raises(InputError, match="position 3"):
        theory.survival_to_conditional([0.9, 0.5, 0.6])


@pytest.mark.parametrize("bad", [0.5, "0.5", ["0.5"], [None], [[0.5], [0.5, 0.5]], [1j]])
def test_what_is_not_a_list_of_numbers_is_refused(bad: object) -> None:
    with pytest.raises(InputError):
        theory.tau(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [[0.5, 0.4], [1.5, -0.5], [[0.5, 0.5], [0.5, 0.6]]])
def test_what_is_not_a_distribution_is_refused(bad: list[float]) -> None:
    with pytest.raises(InputError, match="length distribution"):
        pmf_to_survival(bad)
