"""Certificates: exact, complete, never losing under the hypothesis; and a verifier that is not talked into anything."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import Certificate, InputError, Move, check_theorem, verify_certificate
from gumiho_theory.theorem.certificate import certificate_faults, move_gain, move_terms, moves
from gumiho_theory.theorem.exact import fraction_text

Rates = list[Fraction]
Case = tuple[Rates, Rates, int]

TENTH = Fraction(1, 10)
# Two moves: position 4 gives to 2, then position 3 to 1.
PAIR = ("0.9,0.8,0.7,0.6", "1,1,0.6,0.4", 2)


def enumerated(rates: Rates) -> Fraction:
    """E[L] by listing every outcome of D independent acceptances."""
    total = Fraction()
    for outcome in itertools.product([True, False], repeat=len(rates)):
        weight = Fraction(1)
        for rate, accepted in zip(rates, outcome, strict=True):
            weight *= rate if accepted else 1 - rate
        total += weight * [*outcome, False].index(False)
    return total


def random_rates(rng: random.Random, depth: int) -> Rates:
    """Rates with ties, zeros and ones, over one small denominator or over many."""
    below = rng.choice([2, 10, 97, None])
    denominators = (below or rng.randint(1, 60) for _ in range(depth))
    return [Fraction(rng.randint(0, d), d) for d in denominators]


def admissible(rng: random.Random, rates: Rates, early: int) -> Rates:
    """Return improved rates: a random amount, often all that there is, given by late and taken by early positions."""

    def parts(most: Rates, amount: Fraction) -> Rates:
        left, taken = amount, [Fraction()] * len(most)
        for i in rng.sample(range(len(most)), len(most)):
            share = rng.choice([Fraction(1), Fraction(1, 3), Fraction(rng.randint(0, 7), 7)])
            taken[i] = min(most[i] * share, left)
            left -= taken[i]
        for i in range(len(most)):
            more = min(most[i] - taken[i], left)
            taken[i] += more
            left -= more
        return taken

    room, spare = [1 - rate for rate in rates[:early]], rates[early:]
    amount = min(sum(room), sum(spare)) * rng.choice([Fraction(1), Fraction(1, 2), Fraction(rng.randint(0, 9), 9)])
    raised = [rate + more for rate, more in zip(rates[:early], parts(room, amount), strict=True)]
    return raised + [rate - less for rate, less in zip(spare, parts(spare, amount), strict=True)]


def random_case(rng: random.Random, form: str | None) -> Case:
    """Return an admissible change whose original rates satisfy a form of the hypothesis, or are in any order.

    In any order, half of the cases empty the first late position although those behind it are sure: such moves lose.
    """
    depth = rng.randint(2, 12)
    early = rng.randint(1, depth - 1)
    rates = random_rates(rng, depth)
    if form is not None:
        rates.sort(reverse=True)
    elif early < depth - 1 and rng.random() < 0.5:
        rates[early + 1 :] = [Fraction(1)] * (depth - early - 1)
        given = rates[early] = min(rates[early], 1 - rates[early - 1])
        return rates, [*rates[: early - 1], rates[early - 1] + given, Fraction(), *rates[early + 1 :]], early
    if form == "dominated":
        rates[:early] = rng.sample(rates[:early], early)
    return rates, admissible(rng, rates, early), early


@pytest.mark.parametrize("form", ["descending", "dominated"])
def test_under_either_form_every_move_gains_and_every_certificate_verifies(form: str) -> None:
    rng = random.Random(20)
    dominated_only = 0
    for _ in range(5_000):
        case = random_case(rng, form)
        check = check_theorem(*case)
        dominated_only += check.hypothesis == "dominated"
        assert check.hypothesis in ("descending", form), case
        assert check.certified, case
        assert check.gain_exact == check.certificate.gain >= 0, case
        assert certificate_faults(*case, check.certificate) == (), case
    assert (dominated_only > 500) == (form == "dominated")


def test_without_the_hypothesis_the_certificate_is_still_right_and_shows_what_loses() -> None:
    rng = random.Random(21)
    losing = 0
    for _ in range(1_000):
        case = random_case(rng, None)
        check = check_theorem(*case)
        losing += check.gain_exact is not None and check.gain_exact < 0
        assert certificate_faults(*case, check.certificate) == (), case
        assert check.certified == (not check.certificate.harmful), case
        if check.gain_exact is not None and check.gain_exact < 0:
            assert check.certificate.harmful, case
    assert losing > 20


@given(st.integers(0, 2**32))
def test_the_gains_sum_to_the_change_that_enumeration_of_all_outcomes_gives(seed: int) -> None:
    rng = random.Random(seed)
    original, improved, early = random_case(rng, None)
    if len(original) > 7:
        original, improved, early = original[:5], admissible(rng, original[:5], 2), 2
    assert moves(original, improved, early).gain == enumerated(improved) - enumerated(original)


@given(st.integers(0, 2**32))
def test_the_formula_of_one_move_is_the_difference_of_the_closed_form(seed: int) -> None:
    rng = random.Random(seed)
    rates = random_rates(rng, rng.randint(2, 7))
    source, destination = sorted(rng.sample(range(1, len(rates) + 1), 2), reverse=True)
    amount = min(rates[source - 1], 1 - rates[destination - 1]) * Fraction(rng.randint(0, 5), 5)
    after = list(rates)
    after[source - 1] -= amount
    after[destination - 1] += amount
    gain = move_gain(rates, source, destination, amount)
    assert gain == enumerated(after) - enumerated(rates)
    b_term, c_term = move_terms(rates, source, destination)
    helps = c_term * (rates[destination - 1] + amount - rates[source - 1]) <= b_term
    assert helps == (gain >= 0) or amount == 0


def test_moves_go_from_the_last_position_to_the_nearest_early_one_first() -> None:
    def made(*case: object) -> list[tuple[int, int, Fraction]]:
        return [(move.source, move.destination, move.amount) for move in moves(*case).moves]  # type: ignore[arg-type]

    assert made(*PAIR) == [(4, 2, 2 * TENTH), (3, 1, TENTH)]
    assert made("0.9,0.9,0.7,0.6", "1,1,0.7,0.4", 2) == [(4, 2, TENTH), (4, 1, TENTH)]
    assert made("0.9,0.7,0.7,0.6", "0.9,1,0.6,0.4", 2) == [(4, 2, 2 * TENTH), (3, 2, TENTH)]


def test_a_change_of_nothing_has_an_empty_certificate() -> None:
    certificate = moves("0.5,0.4", "0.5,0.4", 1)
    assert certificate == Certificate(())
    assert (certificate.gain, certificate.certified) == (0, True)
    assert verify_certificate("0.5,0.4", "0.5,0.4", 1, certificate)


def test_a_move_that_neither_gains_nor_loses_is_not_harmful() -> None:
    # Behind a rate of 0 nothing is ever accepted.
    certificate = moves("0,0.5,0.6", "0,0.6,0.5", 2)
    assert certificate.gain == 0
    assert certificate.certified


def test_a_rate_of_one_before_and_rates_of_zero_after_are_no_special_case() -> None:
    check = check_theorem("1,0,0.5,0.5", "1,1,0,0", 2)
    assert check.gain_exact == check.certificate.gain == 1
    assert verify_certificate("1,0,0.5,0.5", "1,1,0,0", 2, check.certificate)


def change(certificate: Certificate, number: int, **values: object) -> Certificate:
    changed = list(certificate.moves)
    changed[number] = replace(changed[number], **values)  # type: ignore[arg-type]
    return replace(certificate, moves=tuple(changed))


def corruptions() -> dict[str, tuple[Certificate, str]]:
    right = moves(*PAIR)
    first, second = right.moves
    tiny = Fraction(1, 10**30)
    gains = {"gain": first.gain + tiny}, {"gain": second.gain - tiny}
    return {
        "a gain a hair too large": (change(right, 0, **gains[0]), "move 1: its gain is"),
        "two wrong gains with the right sum": (change(change(right, 0, **gains[0]), 1, **gains[1]), "move 2: its gain"),
        "a loss written as a gain": (change(right, 1, gain=-second.gain), "move 2: its gain is"),
        "a smaller amount": (change(right, 0, amount=first.amount / 2), "do not arrive"),
        "an amount of nothing": (change(right, 0, amount=Fraction()), "amount 0 is not above 0"),
        "a negative amount": (change(right, 0, amount=-first.amount), "is not above 0"),
        "another source": (change(right, 0, source=3), "its gain is"),
        "another destination": (change(right, 0, destination=1), "outside [0, 1]"),
        "from an early position": (change(right, 0, source=2, destination=1), "not from late to early"),
        "to a late position": (change(right, 0, destination=3), "not from late to early"),
        "beyond the end": (change(right, 0, source=5), "not from late to early"),
        "position 0": (change(right, 0, destination=0), "not from late to early"),
        "a move left out": (Certificate(right.moves[:1]), "do not arrive"),
        "no moves at all": (Certificate(()), "do not arrive"),
        "a move twice": (Certificate((first, first, second)), "outside [0, 1]"),
        "the moves in another order, gains kept": (Certificate((second, first)), "move 1: its gain is"),
        "a residual that the rates do not have": (replace(right, residual=tiny), "residual"),
    }


@pytest.mark.parametrize("name", list(corruptions()))
def test_a_corrupted_certificate_is_rejected_with_its_reason(name: str) -> None:
    corrupted, reason = corruptions()[name]
    assert not verify_certificate(*PAIR, corrupted)
    assert any(reason in fault for fault in certificate_faults(*PAIR, corrupted))


def test_the_certificate_of_one_change_does_not_pass_for_another() -> None:
    certificate = moves(*PAIR)
    assert verify_certificate(*PAIR, certificate)
    assert not verify_certificate(PAIR[0], "1,0.9,0.6,0.5", 2, certificate)
    assert not verify_certificate("0.9,0.8,0.6,0.6", "1,1,0.6,0.3", 2, certificate)


def test_another_order_of_moves_with_its_own_gains_is_as_good() -> None:
    rates = [Fraction(n, 10) for n in (9, 8, 7, 6)]
    second = Move(3, 1, TENTH, move_gain(rates, 3, 1, TENTH))
    rates[2], rates[0] = rates[2] - TENTH, rates[0] + TENTH
    first = Move(4, 2, 2 * TENTH, move_gain(rates, 4, 2, 2 * TENTH))
    assert verify_certificate(*PAIR, Certificate((second, first)))


def test_float_rates_leave_a_residual_and_a_certificate_of_all_else() -> None:
    rng = np.random.default_rng(3)
    residuals = 0
    for _ in range(300):
        original = np.sort(rng.random(6))[::-1]
        share = rng.random(3)
        give = original[3:] * rng.random(3) * 0.5
        take = share / share.sum() * give.sum()
        improved = np.concatenate([original[:3] + take, original[3:] - give])
        if improved.max() > 1:
            continue
        check = check_theorem(original, improved, 3)
        assert check.certified
        assert verify_certificate(original, improved, 3, check.certificate)
        assert abs(check.residual) < 1e-15
        assert (check.gain_exact is None) == (check.residual != 0)
        # Within D times the residual, as promised, and what the rounding to a float adds.
        assert abs(check.gain - float(check.certificate.gain)) <= 6 * abs(check.residual) + 1e-15
        residuals += check.residual != 0
    assert residuals > 50


def test_positions_of_a_move_that_are_none_are_refused() -> None:
    rates = [Fraction(1, 2)] * 3
    for source, destination in ((1, 1), (1, 2), (4, 1), (2, 0)):
        with pytest.raises(InputError, match="1 <= destination < source <= 3"):
            move_terms(rates, source, destination)


def test_numbers_of_many_thousand_digits_are_written_whole() -> None:
    # Python refuses to write integers of more than 4300 digits by itself.
    value = Fraction(1, 3**12_000)
    above, below = fraction_text(value).split("/")
    assert above == "1"
    assert len(below) == 5726
    assert below[-6:] == f"{pow(3, 12_000, 10**6):06d}"
    assert fraction_text(Fraction(-6, 4)) == "-3/2"
    assert fraction_text(Fraction(2)) == "2"
