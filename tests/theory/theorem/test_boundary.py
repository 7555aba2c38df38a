from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import InputError, expected_accepted, sensitivity
from gumiho_theory.theorem.boundary import counterexample, first_order_criterion, move_effect
from gumiho_theory.theorem.losses import largest_loss

exact_rate = st.builds(Fraction, st.integers(0, 12), st.just(12))
vectors = st.lists(exact_rate, min_size=2, max_size=7)


def expected(rates: list[Fraction]) -> Fraction:
    product, total = Fraction(1), Fraction(0)
    for rate in rates:
        product *= rate
        total += product
    return total


def moved(rates: list[Fraction], a: int, b: int, amount: Fraction) -> list[Fraction]:
    after = list(rates)
    after[a - 1] += amount
    after[b - 1] -= amount
    return after


@st.composite
def moves(draw):
    rates = draw(vectors)
    a = draw(st.integers(1, len(rates) - 1))
    return rates, a, draw(st.integers(a + 1, len(rates)))


@given(moves(), st.integers(1, 12))
def test_the_effect_of_a_move_is_the_change_of_the_closed_form(case, twelfths):
    rates, a, b = case
    amount = min(1 - rates[a - 1], rates[b - 1]) * twelfths / 12
    effect = move_effect(rates, b, a)
    change = expected(moved(rates, a, b, amount)) - expected(rates)
    assert amount * (effect.direct + effect.indirect * (rates[b - 1] - rates[a - 1] - amount)) == change
    assert np.isclose(effect.change(float(rates[a - 1]), float(rates[b - 1]), float(amount)), float(change), atol=1e-12)


@given(moves())
def test_the_effect_does_not_depend_on_the_two_rates_themselves(case):
    rates, a, b = case
    others = list(rates)
    others[a - 1], others[b - 1] = Fraction(0), Fraction(1)
    assert move_effect(rates, b, a) == move_effect(others, b, a)


@given(moves())
def test_the_harmful_region_is_a_rectangle_and_a_triangle_exactly(case):
    rates, a, b = case
    p_a, p_b = rates[a - 1], rates[b - 1]
    largest = min(1 - p_a, p_b)
    threshold = move_effect(rates, b, a).threshold
    if largest == 0:
        return
    changes = [expected(moved(rates, a, b, largest * k / 50)) - expected(rates) for k in range(1, 51)]
    tiny = expected(moved(rates, a, b, largest / 10**9)) - expected(rates)
    if threshold is None:
        assert min(changes) >= 0
        return
    some = p_a > threshold and p_b < 1 - threshold
    assert (changes[-1] < 0) == some == any(change < 0 for change in changes)
    every = p_a - p_b >= threshold
    assert (tiny < 0) == every
    if every:
        assert all(change < 0 for change in changes)


@given(st.lists(exact_rate, min_size=2, max_size=7), st.integers(1, 6))
def test_descending_rates_keep_every_move_out_of_the_harmful_region(rates, a):
    rates = sorted(rates, reverse=True)
    a = min(a, len(rates) - 1)
    for b in range(a + 1, len(rates) + 1):
        threshold = move_effect(rates, b, a).threshold
        assert threshold is None or not (rates[a - 1] > threshold and rates[b - 1] < 1 - threshold)


def test_moves_between_positions_that_do_not_fit_are_refused():
    for source, destination in ((1, 1), (1, 2), (4, 1), (2, 0)):
        with pytest.raises(InputError, match="destination"):
            move_effect("0.5,0.5,0.5", source, destination)
    with pytest.raises(InputError, match="position 2"):
        move_effect("0.5,1.5", 2, 1)


@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=8))
def test_the_gradient_falls_exactly_where_the_first_order_criterion_is_at_most_one(rates):
    criterion = first_order_criterion(rates)
    falls = -np.diff(sensitivity(rates))
    before = np.cumprod([1.0, *rates])[:-2]
    assert np.allclose(before * (1 - criterion), falls, atol=1e-12)


def test_the_first_order_criterion_of_a_batch_is_that_of_its_rows():
    rates = np.random.default_rng(0).random((2, 3, 5))
    whole = first_order_criterion(rates)
    assert whole.shape == (2, 3, 4)
    for index in np.ndindex(2, 3):
        assert np.array_equal(whole[index], first_order_criterion(rates[index]))
    assert first_order_criterion([0.5]).shape == (0,)
    with pytest.raises(InputError, match="position 2"):
        first_order_criterion([0.5, 1.5])


@pytest.mark.parametrize("depth", [3, 4, 5, 7, 10, 15, 20, 60, 512])
def test_a_counterexample_loses_and_breaks_nothing_but_the_order(depth):
    for seed in range(3):
        found = counterexample(depth, seed)
        assert found is not None
        d = found.early
        assert len(found.original) == len(found.improved) == depth
        assert 1 <= d < depth
        assert sum(found.original) == sum(found.improved)
        assert all(0 <= rate <= 1 for rate in (*found.original, *found.improved))
        assert all(new >= old for old, new in zip(found.original[:d], found.improved[:d], strict=True))
        assert all(new <= old for old, new in zip(found.original[d:], found.improved[d:], strict=True))
        assert list(found.original) != sorted(found.original, reverse=True)
        assert found.gain == expected(list(found.improved)) - expected(list(found.original)) < 0
        if depth < 20:
            assert -found.gain <= largest_loss(depth).bound


def test_the_search_is_reproducible_and_its_json_has_the_keys_that_scripts_read():
    found = counterexample(4, 1)
    assert found is not None
    assert found == counterexample(4, 1)
    data = found.to_json()
    assert data["found"] is True
    assert data["gain"] < 0
    loss = expected_accepted(data["original"]) - expected_accepted(data["improved"])
    assert np.isclose(loss, -data["gain"])
    assert all(round(rate, 2) == rate for rate in data["original"] + data["improved"])


def test_there_is_no_counterexample_with_fewer_than_three_positions():
    assert counterexample(1, 0) is None
    assert counterexample(2, 0) is None


def test_no_change_of_two_positions_loses_on_an_exact_grid_and_the_formula_of_the_proof_holds():
    grid = [Fraction(k, 12) for k in range(13)]
    for p_1 in grid:
        for p_2 in grid:
            for z in (z for z in grid if z <= min(1 - p_1, p_2)):
                change = expected([p_1 + z, p_2 - z]) - expected([p_1, p_2])
                assert change == z * (p_2 + (1 - p_1 - z)) >= 0


@pytest.mark.parametrize("arguments", [(0, 0), (-3, 0), (513, 0), (3, -1), (2, -1)])
def test_a_search_out_of_range_is_refused(arguments):
    with pytest.raises(InputError):
        counterexample(*arguments)
