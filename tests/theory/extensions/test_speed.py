"""The theorem for speed: worth of accuracy in seconds, break-even of an exchange, break-even of a length."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import CostProfile, InputError
from gumiho_theory.extensions.speed import (
    PositionCosts,
    exchange,
    length_break_even,
    speed_per_second,
    speed_sensitivity,
    speedup,
    worth_seconds,
)

sixteenths = st.integers(0, 16).map(lambda k: Fraction(k, 16))
milli = st.integers(0, 20).map(lambda k: Fraction(k, 1000))
rate_lists = st.lists(sixteenths, min_size=1, max_size=6)
COSTS = PositionCosts(("1/1000", "1/1000", "3/1000", 0), "20/1000", "18/1000")
RATES = [Fraction(k, 100) for k in (90, 80, 60, 50)]


def enumerated_tau(p: Any) -> Fraction:
    """1 + E[L] by listing all outcomes of D acceptances."""
    total = Fraction(0)
    for outcome in itertools.product([True, False], repeat=len(p)):
        weight = Fraction(1)
        for rate, accepted in zip(p, outcome, strict=True):
            weight *= rate if accepted else 1 - rate
        total += weight * (1 + [*outcome, False].index(False))
    return total


def costs_of(data: st.DataObject, depth: int) -> PositionCosts:
    draft = data.draw(st.lists(milli, min_size=depth, max_size=depth))
    return PositionCosts(tuple(draft), data.draw(milli) + Fraction(1, 1000), data.draw(milli) + Fraction(1, 1000))


@given(rate_lists, st.data())
def test_speedup_and_its_slopes_equal_enumeration(p: list[Fraction], data: st.DataObject) -> None:
    costs = costs_of(data, len(p))
    scale = costs.baseline / costs.cycle
    assert speedup(p, costs) == pytest.approx(float(enumerated_tau(p) * scale), abs=1e-12)
    slopes = speed_sensitivity(p, costs)
    for i in range(len(p)):
        ends = [enumerated_tau([*p[:i], Fraction(end), *p[i + 1 :]]) for end in (1, 0)]
        assert slopes[i] == pytest.approx(float((ends[0] - ends[1]) * scale), rel=1e-12, abs=1e-12)


def test_speedup_equals_tokens_over_seconds_of_sampled_cycles() -> None:
    n = 200_000
    accepted = np.random.default_rng(4).random((n, 4)) < np.array(RATES, dtype=np.float64)
    tokens = 1 + np.cumprod(accepted, axis=1).sum(axis=1)
    seconds = n * float(COSTS.cycle)
    measured = tokens.sum() / seconds * float(COSTS.baseline)
    error = tokens.std() / np.sqrt(n) * float(COSTS.baseline / COSTS.cycle)
    assert abs(measured - speedup(RATES, COSTS)) < 5 * error


@given(rate_lists, st.data())
def test_worth_in_seconds_is_the_price_at_which_speed_stays(p: list[Fraction], data: st.DataObject) -> None:
    costs = costs_of(data, len(p))
    prices = data.draw(st.lists(milli.map(lambda m: m + Fraction(1, 10**6)), min_size=len(p), max_size=len(p)))
    tau = enumerated_tau(p)
    per_second = speed_per_second(p, costs, prices)
    for i, worth in enumerate(worth_seconds(p, costs)):
        slope = enumerated_tau([*p[:i], Fraction(1), *p[i + 1 :]]) - enumerated_tau([*p[:i], Fraction(0), *p[i + 1 :]])
        assert worth == pytest.approx(float(slope * costs.cycle / tau), rel=1e-12)
        # The derivative of t tau / C along dp_i, dC = kappa dp_i, for each second of dC.
        exact = costs.baseline * (slope / prices[i] * costs.cycle - tau) / costs.cycle**2
        assert per_second[i] == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


@given(st.lists(sixteenths, min_size=2, max_size=6), st.data())
def test_an_exchange_at_its_break_even_price_leaves_the_speed_exactly_as_it_was(
    p: list[Fraction], data: st.DataObject
) -> None:
    costs = costs_of(data, len(p))
    source, destination = data.draw(st.permutations(range(1, len(p) + 1)))[:2]
    amount = min(p[source - 1], 1 - p[destination - 1]) / 2
    if amount == 0:
        return
    free = exchange(p, costs, source, destination, amount, [0] * len(p))
    moved = list(p)
    moved[source - 1] -= amount
    moved[destination - 1] += amount
    assert (free.tau_before, free.tau_after) == (enumerated_tau(p), enumerated_tau(moved))
    assert free.break_even == (free.tau_after - free.tau_before) * costs.cycle / (free.tau_before * amount)
    assert free.worth_it == (free.tau_after > free.tau_before)
    prices = [Fraction(1, 10)] * len(p)
    prices[destination - 1] += free.break_even
    if prices[destination - 1] >= 0 and costs.cycle + amount * free.break_even > 0:
        even = exchange(p, costs, source, destination, amount, prices)
        assert even.speed_ratio == 1
        assert even.break_even == free.break_even
        prices[destination - 1] += Fraction(1, 1000)
        assert exchange(p, costs, source, destination, amount, prices).speed_ratio < 1


@given(st.lists(sixteenths, min_size=2, max_size=6), st.data())
def test_under_the_hypothesis_early_accuracy_that_is_no_dearer_never_slows_down(
    p: list[Fraction], data: st.DataObject
) -> None:
    p = sorted(p, reverse=True)
    costs = costs_of(data, len(p))
    destination, source = sorted(data.draw(st.permutations(range(1, len(p) + 1)))[:2])
    amount = min(p[source - 1], 1 - p[destination - 1])
    prices = sorted(data.draw(st.lists(milli, min_size=len(p), max_size=len(p))))
    if amount and costs.cycle + amount * (prices[destination - 1] - prices[source - 1]) > 0:
        done = exchange(p, costs, source, destination, amount, prices)
        assert done.break_even >= 0
        assert done.speed_ratio >= 1


def test_dearer_early_accuracy_can_slow_down_although_tau_rises() -> None:
    done = exchange(RATES, COSTS, 4, 1, "1/100", ["1", "1/10", "1/10", "1/100"])
    assert done.tau_after > done.tau_before
    assert not done.worth_it
    assert 0 < done.break_even < Fraction(99, 100)


@given(st.lists(sixteenths, min_size=1, max_size=6), st.data())
def test_a_position_pays_up_to_its_break_even_cost(p: list[Fraction], data: st.DataObject) -> None:
    costs = costs_of(data, len(p))
    limits = length_break_even(p, costs)
    for i in range(len(p)):
        shorter = costs.fixed + sum(costs.draft[:i], Fraction())
        before, after = enumerated_tau(p[:i]), enumerated_tau(p[: i + 1])
        assert limits[i] == pytest.approx(float((after / before - 1) * shorter), rel=1e-12, abs=1e-15)


def test_costs_of_a_profile_are_those_of_its_cycle() -> None:
    profile = CostProfile("t", "d", "cpu", "float32", 0.02, (1, 8), (0.02, 0.025), 0.002, 0.003, 2, 0.001)
    costs = PositionCosts.from_profile(profile, depth=5, nodes=6)
    assert [float(c) for c in costs.draft] == pytest.approx([0.002, 0.002, 0.003, 0, 0])
    assert float(costs.cycle) == pytest.approx(profile.cycle_seconds(5, 6))
    rates = [0.9, 0.8, 0.5, 0.4, 0.3]
    assert speedup(rates, costs) == pytest.approx(profile.speedup(1 + np.cumprod(rates).sum(), 5, 6))


def test_a_draft_of_nothing_is_plain_decoding() -> None:
    assert speedup([], PositionCosts((), 2, 1)) == 0.5


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: PositionCosts(("-1",), 1, 1), "draft seconds, position 1: found -1.0"),
        (lambda: PositionCosts(("1",), 0, 1), "fixed seconds: found 0.0"),
        (lambda: PositionCosts(("1",), 1, "x"), "baseline seconds, position 1"),
        (lambda: speedup([0.5], COSTS), "rates: found 1 rates, wanted 4"),
        (lambda: worth_seconds([0.5, 0.5, 0.5, 1.5], COSTS), "rates, position 4"),
        (lambda: speed_per_second(RATES, COSTS, [1, 1, 1]), "prices: found 3 prices, wanted 4"),
        (lambda: speed_per_second(RATES, COSTS, [1, 0, 1, 1]), "prices, position 2: found 0.0, wanted above 0"),
        (lambda: exchange(RATES, COSTS, 2, 2, "0.1", [1] * 4), "source, destination: found 2, 2"),
        (lambda: exchange(RATES, COSTS, 5, 1, "0.1", [1] * 4), "source, destination: found 5, 1"),
        (lambda: exchange(RATES, COSTS, 4, 1, "0.2", [1] * 4), "amount: found 0.2, wanted above 0, at most 0.1"),
        (lambda: exchange(RATES, COSTS, 4, 1, 0, [1] * 4), "amount: found 0.0"),
        (lambda: exchange(RATES, COSTS, 4, 1, "0.1", [1, 1, 1, -1]), "prices, position 4: found -1.0"),
        (lambda: exchange(RATES, COSTS, 4, 1, "0.1", [0, 0, 0, 1]), "a cycle of -0.075 s after the exchange"),
        (lambda: exchange(RATES[:3], COSTS, 3, 1, "0.1", [1] * 4), "rates: found 3 values, wanted 4"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
