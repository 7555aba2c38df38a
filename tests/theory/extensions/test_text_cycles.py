"""Cycles that begin where the one before ended: expected number, worth of a position, theorem and counterexample."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_theory import InputError, tau
from gumiho_theory.extensions.text_cycles import (
    alternating_text,
    cycles_saved,
    expected_cycles,
    sample_cycles,
    token_rates,
)

twentieths = st.integers(0, 20).map(lambda k: Fraction(k, 20))
texts = st.sampled_from([(2, 1), (4, 1), (3, 2), (4, 2), (2, 3)]).flatmap(
    lambda size: st.lists(st.lists(twentieths, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0])
)


def enumerated(rates: list[list[Fraction]]) -> Fraction:
    """Decode the text under every outcome of every (token, position)."""
    length, depth = len(rates), len(rates[0])
    twentieth = [int(rate * 20) for row in rates for rate in row]
    total = 0
    for outcome in itertools.product([True, False], repeat=length * depth):
        # In units of 20 to the power of all that is tried: Fractions would take long.
        weight = math.prod(k if right else 20 - k for right, k in zip(outcome, twentieth, strict=True))
        at, cycles = 0, 0
        while at < length:
            cycles += 1
            accepted = 0
            while accepted < depth and at + accepted < length and outcome[(at + accepted) * depth + accepted]:
                accepted += 1
            at += accepted + 1
        total += weight * cycles
    return Fraction(total, 20 ** (length * depth))


@settings(max_examples=40)
@given(texts)
def test_expected_cycles_and_their_slopes_equal_enumeration(rates: list[list[Fraction]]) -> None:
    assert expected_cycles(rates) == enumerated(rates)
    saved = cycles_saved(rates)
    for k in range(len(rates[0])):
        # Linear in each token's rate at position k by itself; the slopes of a common shift add up.
        slope = Fraction(0)
        for t in range(len(rates)):
            ends = []
            for end in (1, 0):
                moved = [list(row) for row in rates]
                moved[t][k] = Fraction(end)
                ends.append(enumerated(moved))
            slope += ends[0] - ends[1]
        assert saved[k] == -slope


def test_expected_cycles_equal_sampled_decoding() -> None:
    rng = np.random.default_rng(6)
    n = 100_000
    for length, depth in ((12, 1), (9, 3), (20, 2)):
        rates = [[Fraction(int(k), 20) for k in rng.integers(0, 21, depth)] for _ in range(length)]
        cycles = sample_cycles(rates, n, rng)
        assert abs(cycles.mean() - float(expected_cycles(rates))) < 5 * cycles.std() / np.sqrt(n) + 1e-12


@given(st.lists(twentieths, min_size=1, max_size=12), st.integers(1, 5))
def test_where_tokens_alone_are_difficult_earlier_is_worth_more_on_every_text(
    difficulty: list[Fraction], depth: int
) -> None:
    saved = list(cycles_saved(token_rates(difficulty, depth)))
    assert saved == sorted(saved, reverse=True)
    assert saved[-1] >= 0


def test_on_a_long_even_text_cycles_are_tokens_over_tau() -> None:
    rates = token_rates([Fraction(7, 10)] * 400, 3)
    assert 400 / float(expected_cycles(rates)) == pytest.approx(tau([0.7] * 3), rel=0.01)


@pytest.mark.parametrize("length", range(7, 61))
def test_rates_that_depend_on_the_position_too_can_lose_although_they_fall_for_every_token(length: int) -> None:
    before, after = alternating_text(length)
    assert all(first > second for first, second in before)
    assert all(sum(a) == sum(b) and a[0] > b[0] for a, b in zip(after, before, strict=True))
    assert expected_cycles(after) > expected_cycles(before)


def test_the_losing_text_loses_in_sampled_decoding_too() -> None:
    before, after = alternating_text(200)
    n = 50_000
    rng = np.random.default_rng(1)
    cycles = [sample_cycles(rates, n, rng) for rates in (before, after)]
    error = np.hypot(cycles[0].std(), cycles[1].std()) / np.sqrt(n)
    lost = cycles[1].mean() - cycles[0].mean()
    assert abs(lost - float(expected_cycles(after) - expected_cycles(before))) < 5 * error
    assert lost > 5 * error


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: expected_cycles([]), "rates: found rows of"),
        (lambda: expected_cycles(["1", "1,1"]), "rates: found rows of"),
        (lambda: expected_cycles(["1", "2"]), "rates, token 2, position 1: found 2"),
        (lambda: token_rates("0.5", 0), "depth: found 0"),
        (lambda: sample_cycles(["1"], -1, np.random.default_rng(0)), "texts: found -1"),
    ],
)
def test_what_is_no_text_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
