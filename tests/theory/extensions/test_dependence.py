"""Hidden states: closed form, enumeration and draws agree; what holds in every state holds or fails as is said."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_theory import InputError, expected_accepted, sensitivity
from gumiho_theory.extensions.dependence import HiddenStates, check_shift
from gumiho_theory.extensions.examples import EXAMPLES, DependenceExample
from gumiho_theory.theorem.check import hypothesis_form
from gumiho_theory.theorem.exact import expected_exact

seeds = st.integers(0, 2**32 - 1)


def distribution(rng: np.random.Generator, size: int) -> list[Fraction]:
    weights = [int(w) + 1 for w in rng.integers(0, 4, size)]
    return [Fraction(w, sum(weights)) for w in weights]


def rates_of(rng: np.random.Generator, states: int, depth: int, descending: bool = True) -> list[list[Fraction]]:
    rows = [[Fraction(int(k), 20) for k in rng.integers(0, 21, depth)] for _ in range(states)]
    return [sorted(row, reverse=True) for row in rows] if descending else rows


def stationary(transition: list[list[Fraction]]) -> list[Fraction]:
    """Of two states."""
    x, y = transition[0][1], transition[1][0]
    return [y / (x + y), x / (x + y)]


def enumerated(states: HiddenStates) -> list[Fraction]:
    """P(L >= i), i = 1..D, by listing every path of states and every outcome."""
    survival = [Fraction(0)] * states.depth
    size = len(states.start)
    for path in itertools.product(range(size), repeat=states.depth):
        chance = states.start[path[0]]
        for z, y in itertools.pairwise(path):
            chance *= states.transition[z][y]
        for outcome in itertools.product([True, False], repeat=states.depth):
            weight = chance
            for i, accepted in enumerate(outcome):
                rate = states.rates[path[i]][i]
                weight *= rate if accepted else 1 - rate
            for i in range([*outcome, False].index(False)):
                survival[i] += weight
    return survival


def random_chain(rng: np.random.Generator, states: int, depth: int) -> HiddenStates:
    transition = [distribution(rng, states) for _ in range(states)]
    return HiddenStates.chain(distribution(rng, states), transition, rates_of(rng, states, depth, descending=False))


@settings(max_examples=30)
@given(seeds, st.integers(1, 3), st.integers(1, 3))
def test_survival_and_slopes_equal_enumeration_of_states_and_outcomes(seed: int, size: int, depth: int) -> None:
    chain = random_chain(np.random.default_rng(seed), size, depth)
    assert list(chain.survival()) == enumerated(chain)
    assert chain.expected_accepted() == sum(enumerated(chain))
    slopes = chain.sensitivity()
    for z, i in itertools.product(range(size), range(depth)):
        # E[L] is linear in each rate of each state.
        ends = []
        for end in (1, 0):
            rates = [list(row) for row in chain.rates]
            rates[z][i] = Fraction(end)
            ends.append(sum(enumerated(HiddenStates.chain(chain.start, chain.transition, rates))))
        assert slopes[z][i] == ends[0] - ends[1]


def test_survival_equals_sampled_cycles() -> None:
    rng = np.random.default_rng(1)
    n = 200_000
    for size, depth in ((1, 3), (2, 5), (3, 4)):
        chain = random_chain(rng, size, depth)
        lengths = chain.sample(n, rng)
        for i, survival in enumerate(map(float, chain.survival()), start=1):
            assert abs((lengths >= i).mean() - survival) < 5 * np.sqrt(survival * (1 - survival) / n) + 1e-12


def test_a_mixture_is_the_weighted_sum_of_its_states() -> None:
    rates = [[Fraction(9, 10), Fraction(1, 2)], [Fraction(1, 5), Fraction(3, 4)]]
    mixture = HiddenStates.mixture("1/4, 3/4", rates)
    assert mixture.is_mixture and mixture.is_stationary
    assert mixture.expected_accepted() == expected_exact(rates[0]) / 4 + expected_exact(rates[1]) * 3 / 4
    slopes = np.array(mixture.sensitivity(), dtype=np.float64)
    assert np.allclose(slopes, [sensitivity(rates[0]) / 4, sensitivity(rates[1]) * 3 / 4])


def test_states_that_are_alike_are_an_independent_chain() -> None:
    row = [Fraction(9, 10), Fraction(1, 2), Fraction(3, 4)]
    chain = HiddenStates.chain("1/4, 3/4", ["1/2, 1/2", "1/5, 4/5"], [row, row])
    assert list(chain.conditional()) == row
    assert float(chain.expected_accepted()) == pytest.approx(expected_accepted(row))
    assert not chain.is_mixture


@given(seeds, st.integers(2, 3), st.integers(2, 6))
def test_pooled_rates_of_states_with_one_rate_each_never_fall(seed: int, size: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    rates = [[Fraction(int(k) + 1, 21)] * depth for k in rng.integers(0, 20, size)]
    pooled = HiddenStates.mixture(distribution(rng, size), rates).conditional()
    assert list(pooled) == sorted(pooled)
    if len({row[0] for row in rates}) > 1:
        assert hypothesis_form(pooled, 1)[0] is None


@given(seeds, st.integers(2, 3), st.integers(2, 5))
def test_a_shift_admissible_in_every_state_of_a_mixture_never_loses(seed: int, size: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rates_of(rng, size, depth)
    early = int(rng.integers(1, depth))
    amounts = []
    # Each state may even have a shift of its own.
    for row in rates:
        shift = [Fraction(0)] * depth
        for _ in range(4):
            b, a = int(rng.integers(early, depth)), int(rng.integers(0, early))
            moved = min(row[b] + shift[b], 1 - row[a] - shift[a]) * Fraction(int(rng.integers(0, 4)), 3)
            shift[a] += moved
            shift[b] -= moved
        amounts.append(shift)
    mixture = HiddenStates.mixture(distribution(rng, size), rates)
    if all(mixture.survival()):
        done = check_shift(mixture, amounts, early)
        assert done.guaranteed and done.conserved and done.conserved_on_average
        assert done.gain >= 0


@given(seeds, st.integers(2, 3), st.integers(2, 5))
def test_from_a_stationary_start_earlier_is_worth_more_in_any_chain(seed: int, size: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    if size == 2:
        transition = [distribution(rng, 2) for _ in range(2)]
        start = stationary(transition)
    else:
        # A random mix of rotations leaves the uniform distribution as it is; pure ones are as periodic as can be.
        turn = distribution(rng, size) if rng.random() < 0.5 else [Fraction(int(k == 1)) for k in range(size)]
        transition = [[turn[(y - z) % size] for y in range(size)] for z in range(size)]
        start = [Fraction(1, size)] * size
    chain = HiddenStates.chain(start, transition, rates_of(rng, size, depth))
    assert chain.is_stationary
    common = [sum(column) for column in zip(*chain.sensitivity(), strict=True)]
    assert common == sorted(common, reverse=True)
    for source in range(1, depth):
        room = min(*(1 - row[0] for row in chain.rates), *(row[source] for row in chain.rates))
        amounts = [room, *[Fraction(0)] * (depth - 1)]
        amounts[source] = -room
        assert chain.shift(amounts).expected_accepted() >= chain.expected_accepted()


@given(seeds, st.integers(2, 6))
def test_two_persistent_states_of_one_rate_each_make_earlier_worth_more_from_every_start(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    stay, come = sorted((Fraction(int(k), 12) for k in rng.integers(0, 13, 2)), reverse=True)
    hard, easy = sorted(Fraction(int(k), 20) for k in rng.integers(0, 21, 2))
    for start in ("1,0", "0,1", "1/3,2/3"):
        chain = HiddenStates.chain(start, [[stay, 1 - stay], [come, 1 - come]], [[easy] * depth, [hard] * depth])
        common = [sum(column) for column in zip(*chain.sensitivity(), strict=True)]
        assert common == sorted(common, reverse=True)


@given(seeds, st.integers(2, 3))
def test_at_depth_2_no_kind_of_shift_loses(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, size, 2)
    room = min(*(1 - row[0] for row in chain.rates), *(row[1] for row in chain.rates))
    assert chain.shift([room, -room]).expected_accepted() >= chain.expected_accepted()
    mixture = HiddenStates.mixture(chain.start, chain.rates)
    lost = [row[1] * Fraction(int(rng.integers(0, 4)), 3) for row in chain.rates]
    total = sum(w * d for w, d in zip(mixture.start, lost, strict=True))
    gained = [min(1 - row[0], total / w / size) for w, row in zip(mixture.start, chain.rates, strict=True)]
    reached = sum(w * d for w, d in zip(mixture.start, gained, strict=True))
    amounts = [[g, -d * (reached / total if total else 0)] for g, d in zip(gained, lost, strict=True)]
    assert mixture.shift(amounts).expected_accepted() >= mixture.expected_accepted()


def test_three_rates_in_non_descending_order_lose_by_no_exchange() -> None:
    # E[L] is concave along exchanges between two positions, so that the corners of all possible changes are enough.
    def corners(p: tuple[Fraction, ...], early: int) -> list[tuple[Fraction, ...]]:
        bounds = [(x, Fraction(1)) if i < early else (Fraction(0), x) for i, x in enumerate(p)]
        found = []
        for free in range(3):
            for ends in itertools.product(*(bounds[i] for i in range(3) if i != free)):
                rest = sum(p) - sum(ends)
                if bounds[free][0] <= rest <= bounds[free][1]:
                    found.append((*ends[:free], rest, *ends[free:]))
        return found

    grid = [Fraction(k, 12) for k in range(13)]
    for p in itertools.combinations_with_replacement(grid, 3):
        for early in (1, 2):
            assert all(expected_exact(q) >= expected_exact(p) for q in corners(p, early))
    # Not so for rates in other orders.
    p = (Fraction(4, 5), Fraction(1, 6), Fraction(1))
    assert any(expected_exact(q) < expected_exact(p) for q in corners(p, 1))


# One sign an example, in their order.
SIGNS = (1, 1, 1, -1, -1, -1, -1, -1, -1, -1, 1)


@pytest.mark.parametrize("example, sign", list(zip(EXAMPLES, SIGNS, strict=True)), ids=range(len(EXAMPLES)))
def test_examples_hold_the_hypothesis_in_every_state_and_break_it_for_the_pooled_rates(
    example: DependenceExample, sign: int
) -> None:
    states = example.states
    assert all(hypothesis_form(row, example.early)[0] == "descending" for row in states.rates)
    assert hypothesis_form(states.conditional(), example.early)[0] is None
    assert example.gain * sign > 0
    if example.kind == "pooled rates":
        before = list(states.conditional())
        after = [p + d for p, d in zip(before, example.amounts, strict=True)]
        assert all(0 <= p <= 1 for p in after) and sum(after) == sum(before)
        assert example.gain == expected_exact(after) - expected_exact(before)
    else:
        done = check_shift(states, example.amounts, example.early)
        assert done.gain == example.gain == sum(enumerated(states.shift(example.amounts))) - sum(enumerated(states))
        assert done.conserved == (example.kind == "in every state")
        assert done.conserved_on_average
        assert done.guaranteed == (done.conserved and states.is_mixture)


def test_a_losing_chain_loses_in_sampled_cycles_too() -> None:
    example = next(e for e in EXAMPLES if e.kind == "in every state" and e.states.transition[0][0] == 0)
    n = 400_000
    rng = np.random.default_rng(2)
    before, after = (s.sample(n, rng) for s in (example.states, example.states.shift(example.amounts)))
    error = np.hypot(before.std(), after.std()) / np.sqrt(n)
    assert abs(after.mean() - before.mean() - float(example.gain)) < 5 * error
    assert after.mean() < before.mean() - 5 * error


def test_the_same_amounts_gain_in_the_states_and_lose_on_the_pooled_rates() -> None:
    states = HiddenStates.mixture("1/5, 4/5", [["4/5"] * 4, ["4/5", "1/5", 0, 0]])
    done = check_shift(states, "1/5, -1/5, 0, 0", 1)
    assert (done.in_states, done.pooled, done.guaranteed) == (("descending", "descending"), None, True)
    assert (done.gain, done.pooled_gain) == (Fraction(164, 3125), Fraction(-106, 3125))


def test_shifts_are_averaged_over_the_states_that_stand_at_each_position() -> None:
    # Position 1 is always in the first state, position 2 always in the second.
    states = HiddenStates.chain("1, 0", ["0, 1", "1, 0"], ["4/5, 1/2", "3/5, 1/2"])
    done = check_shift(states, ["1/10, 0", "0, -1/10"], 1)
    assert (done.conserved, done.conserved_on_average) == (False, True)
    assert done.pooled_gain == done.gain == Fraction(9, 10) * Fraction(7, 5) - Fraction(4, 5) * Fraction(3, 2)


def test_pooled_gain_is_none_where_the_pooled_rates_have_no_room() -> None:
    # Who is at position 2 came by the second state; what is taken there on average is taken in the first.
    states = HiddenStates.mixture("1/2, 1/2", ["1/10, 9/10", "9/10, 0"])
    assert states.conditional()[1] == Fraction(9, 100)
    assert check_shift(states, ["0, -1/5", "0, 0"], 1).pooled_gain is None
    assert check_shift(states, ["0, -1/10", "0, 0"], 1).pooled_gain is not None


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: HiddenStates.mixture("1/2,1/3", ["1", "1"]), "start: found a sum of 0.833333, wanted exactly 1"),
        (lambda: HiddenStates.chain("1,0", ["1,0", "1,1"], ["1", "1"]), "transition, state 2: found a sum of 2"),
        (lambda: HiddenStates.chain("1,0", ["1,0"], ["1", "1"]), "transition: found rows of"),
        (lambda: HiddenStates.mixture("1,0", ["1,1", "1"]), "rates: found rows of"),
        (lambda: HiddenStates.mixture("1", ["2"]), "rates, state 1, position 1: found 2"),
        (lambda: HiddenStates.mixture("1", ["0,1"]).conditional(), "survival, position 1: found 0"),
        (lambda: HiddenStates.mixture("1", ["0,1"]).shift("1"), "amounts: found rows of"),
        (lambda: HiddenStates.mixture("1", ["0,1"]).shift("0.5,0.5"), "rates, state 1, position 2: found 1.5"),
        (lambda: HiddenStates.mixture("1", ["0,1"]).sample(-1, np.random.default_rng(0)), "cycles: found -1"),
    ],
)
def test_what_are_no_hidden_states_is_refused(build: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()
