"""The check of the theorem on a concrete change: forms of numbers, forms of the hypothesis, refusals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import InputError, TheoremCheck, check_theorem
from gumiho_theory.theorem.check import STATEMENTS, hypothesis_form
from gumiho_theory.theorem.exact import RESIDUAL_TOLERANCE, Change, expected_exact, product, to_exact, to_rates

rates = st.lists(st.fractions(0, 1, max_denominator=20), min_size=1, max_size=7)
tenths = st.lists(st.integers(0, 10).map(lambda n: Fraction(n, 10)), min_size=2, max_size=6)


@given(rates)
def test_the_exact_closed_form_equals_enumeration_of_all_outcomes(p: list[Fraction]) -> None:
    total = Fraction()
    for outcome in itertools.product([True, False], repeat=len(p)):
        weight = math.prod(rate if accepted else 1 - rate for rate, accepted in zip(p, outcome, strict=True))
        total += weight * [*outcome, False].index(False)
    assert expected_exact(p) == total
    assert product(p) == math.prod(p)


def test_the_empty_draft_accepts_nothing() -> None:
    assert (expected_exact([]), product([])) == (0, 1)


@pytest.mark.parametrize(
    "values",
    [
        "3/4, 0.5, 1, 0",
        ["3/4", ".50", "1.", "0"],
        [Fraction(3, 4), Fraction(1, 2), 1, 0],
        [0.75, 0.5, 1.0, 0.0],
        np.array([0.75, 0.5, 1, 0]),
        np.array([0.75, 0.5, 1, 0], dtype=np.float32),
        np.array([Fraction(3, 4), "1/2", np.int64(1), np.float16(0)], dtype=object),
        [sympy.Rational(3, 4), "0.5/1", np.longdouble(1), False],
        iter(["0.75", "1/2", 1, 0]),
    ],
)
def test_numbers_in_every_form_are_read_exactly(values: Any) -> None:
    read = to_exact(values, "x")
    assert read == (Fraction(3, 4), Fraction(1, 2), Fraction(1), Fraction(0))
    assert all(type(value) is Fraction and type(value.numerator) is int for value in read)


def test_a_typed_decimal_is_exact_and_a_float_is_the_binary_number_that_it_is() -> None:
    assert to_exact("0.1", "x") == (Fraction(1, 10),)
    assert to_exact([0.1], "x") == (Fraction(3602879701896397, 2**55),)
    assert to_exact(["0.3/3"], "x") == (Fraction(1, 10),)


@pytest.mark.parametrize(
    "value", ["", "a", "1e-3", "1e999999999", "nan", "inf", "1/0", "1/2/3", "0x1", "1_0", "٣", "--1", "." * 3, "1" * 41]
)
def test_text_that_is_no_plain_number_is_refused_with_its_position(value: str) -> None:
    with pytest.raises(InputError, match=r"x, position 2: found .* wanted a"):
        to_exact(["0.5", value], "x")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), None, 1j, [0.5], b"1", object()])
def test_what_is_no_finite_number_is_refused_with_its_position(value: object) -> None:
    with pytest.raises(InputError, match="x, position 2: found"):
        to_exact([0.5, value], "x")


@pytest.mark.parametrize("values", [None, 0.5, b"0.5", np.array(0.5)])
def test_what_is_no_list_is_refused(values: object) -> None:
    with pytest.raises(InputError, match="wanted a list of numbers"):
        to_exact(values, "x")


def test_more_numbers_than_a_draft_is_deep_are_refused() -> None:
    with pytest.raises(InputError, match="at most 512"):
        to_exact(",".join(["0.5"] * 513), "x")


def test_rates_outside_the_unit_interval_and_no_rates_are_refused() -> None:
    for value in ("-0.1", "1.1", 1 + 2**-52, -(5e-324), Fraction(-1, 10**50)):
        with pytest.raises(InputError, match=r"r, position 2: found .* wanted a rate in \[0, 1\]"):
            to_rates([0, value], "r")
    with pytest.raises(InputError, match="found no rates"):
        to_rates([], "r")


def test_the_known_loss_breaks_the_hypothesis_and_is_exact() -> None:
    check = check_theorem("0.81,0.16,0.99", "0.97,0.00,0.99", 1)
    assert check.hypothesis is None
    assert check.violations == (
        "early rate 1 (0.81) is below later rate 3 (0.99)",
        "later rates rise from 2 (0.16) to 3 (0.99)",
    )
    assert check.gain_exact == Fraction(-97904, 10**6)
    assert (check.gain, check.expected_original, check.expected_improved) == (-0.097904, 1.067904, 0.97)
    assert not check.certified
    assert [move.gain for move in check.certificate.harmful] == [check.gain_exact]


def test_equal_rates_are_descending_and_their_gain_is_a_fraction() -> None:
    check = check_theorem(["9/10"] * 3, [1, "9/10", "4/5"], 1)
    assert check.hypothesis == "descending"
    assert check.violations == ()
    assert check.gain_exact == Fraction(181, 1000)
    assert check.certified


def test_an_early_block_in_any_order_is_dominated() -> None:
    assert hypothesis_form("0.7,0.9,0.7,0.3", 2) == ("dominated", ())
    assert hypothesis_form("0.9,0.7,0.7,0.3", 2) == ("descending", ())
    assert hypothesis_form("0.9,0.6,0.7,0.3", 2) == (None, ("early rate 2 (0.6) is below later rate 3 (0.7)",))
    assert hypothesis_form("0.7,0.9,0.3,0.7", 2) == (None, ("later rates rise from 3 (0.3) to 4 (0.7)",))


def test_rates_that_differ_by_a_hair_are_named_so_that_they_differ() -> None:
    def shown(*rates: Any) -> str:
        return hypothesis_form(rates, 1)[1][0]

    assert shown(1 / 3, 2 / 3) == "early rate 1 (0.333333) is below later rate 2 (0.666667)"
    assert shown(0.3, 0.1 + 0.2) == "early rate 1 (0.29999999999999999) is below later rate 2 (0.30000000000000004)"
    assert shown("1/3", "0.3334") == "early rate 1 (1/3) is below later rate 2 (0.3334)"
    hair = Fraction(1, 10**30)
    assert shown(0, hair) == "early rate 1 (0) is below later rate 2 (1e-30)"
    assert shown("1/2", Fraction(1, 2) + hair).endswith(f"rate 2 ({5 * 10**29 + 1}/{10**30})")
    with pytest.raises(InputError, match=r"found 1\.0000000000000002, wanted a rate"):
        to_rates([1 + 2**-52], "r")
    with pytest.raises(InputError, match=r"found 0\.29999999999999999, wanted at least 0\.30000000000000004"):
        check_theorem([0.1 + 0.2, 0.3], [0.3, 0.3], 1)


@given(tenths, st.integers(1, 5))
def test_the_forms_of_the_hypothesis_are_their_definitions(p: list[Fraction], early: int) -> None:
    early = min(early, len(p) - 1)
    form, violations = hypothesis_form(p, early)
    rising = [(i, j) for i in range(len(p)) for j in range(i + 1, len(p)) if p[i] < p[j]]
    # Two early positions may stand in any order.
    breaking = [(i, j) for i, j in rising if j >= early]
    assert form == ("descending" if not rising else "dominated" if not breaking else None)
    assert bool(violations) == bool(breaking)
    below = [i + 1 for i in range(early) if any((i, j) in breaking for j in range(len(p)))]
    rises = [i + 1 for i in range(early, len(p) - 1) if (i, i + 1) in breaking]
    named = [f"early rate {i} (" for i in below] + [f"later rates rise from {i} (" for i in rises]
    assert [text[: len(start)] for text, start in zip(violations, named, strict=True)] == named


def test_two_positions_never_lose_in_any_order() -> None:
    for p1, p2, zeta in itertools.product(range(11), repeat=3):
        if p1 + zeta <= 10 and zeta <= p2:
            tenth = [Fraction(n, 10) for n in (p1, p2, p1 + zeta, p2 - zeta)]
            check = check_theorem(tenth[:2], tenth[2:], 1)
            assert check.gain >= 0
            assert check.certified


REFUSALS = [
    ("0.5,0.4", "0.5", 1, "improved: found a length of 1, wanted 2"),
    ("0.5", "0.5", 1, "original: found 1 rate, wanted at least 2"),
    ("", "0.5,0.4", 1, "original, position 1: found ''"),
    ([], [], 1, "original: found no rates"),
    ("0.5,0.4", "0.6,0.2", 1, "improved: found a sum of 0.8, wanted 0.9, the sum of original"),
    ("0.5,0.4,0.3", "0.4,0.4,0.4", 1, "improved, position 1: found 0.4, wanted at least 0.5: it is early"),
    ("0.5,0.4,0.3", "0.6,0.2,0.4", 1, "improved, position 3: found 0.4, wanted at most 0.3: it is late"),
    ("0.5,0.4", "0.5,0.4", 0, "early: found 0, wanted a whole number from 1 to 1"),
    ("0.5,0.4", "0.5,0.4", 2, "early: found 2, wanted"),
    ("0.5,0.4", "0.5,0.4", 1.0, "early: found 1.0, wanted"),
    ("0.5,0.4", "0.5,0.4", True, "early: found True, wanted"),
    ("1.2,0.4", "1.2,0.4", 1, r"original, position 1: found 1.2, wanted a rate in [0, 1]"),
    ("0.9,0.4", "1.1,0.2", 1, r"improved, position 1: found 1.1, wanted a rate in [0, 1]"),
    ([math.nan, 0.4], [0.5, 0.4], 1, "original, position 1: found nan, wanted a finite number"),
]


@pytest.mark.parametrize("original, improved, early, message", REFUSALS)
def test_a_change_that_is_not_admissible_is_refused_in_one_line(
    original: Any, improved: Any, early: Any, message: str
) -> None:
    with pytest.raises(InputError) as raised:
        check_theorem(original, improved, early)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_numpy_integers_and_iterators_are_as_good_as_lists() -> None:
    def generated(*values: float) -> Iterator[float]:
        yield from values

    check = check_theorem(generated(0.75, 0.5), generated(1.0, 0.25), np.int64(1))
    assert check.gain_exact == Fraction(1, 4) + Fraction(1, 4) - Fraction(3, 8)


def test_exact_rates_must_keep_their_sum_exactly() -> None:
    hair = Fraction(1, 10**40)
    with pytest.raises(InputError, match="the sum of original$"):
        check_theorem(["1/2", "1/2"], [Fraction(3, 4), Fraction(1, 4) + hair], 1)


def test_the_sum_of_floats_may_lack_up_to_the_stated_tolerance_and_what_it_lacks_is_reported() -> None:
    # 0.1 + 0.2 is not 0.3 in binary.
    check = check_theorem([0.3, 0.3, 0.3], [0.1 + 0.3, 0.3, 0.2], 1)
    exact = sum(map(Fraction, [0.1 + 0.3, 0.3, 0.2])) - 3 * Fraction(0.3)
    assert check.residual == exact != 0
    assert check.gain_exact is None
    assert check.to_json()["gain_exact"] is None
    assert check.to_json()["residual"] == float(exact)
    assert check.gain == pytest.approx((0.4 + 0.12 + 0.024) - (0.3 + 0.09 + 0.027))
    tolerance = float(RESIDUAL_TOLERANCE)
    assert Change.read([0.5, 0.5], [0.75, 0.25 + 0.9 * tolerance], 1).residual > 0
    with pytest.raises(InputError, match="within 1e-09"):
        Change.read([0.5, 0.5], [0.75, 0.25 + 1.1 * tolerance], 1)


def test_coarser_floats_may_lack_their_own_rounding() -> None:
    original = np.array([0.9, 0.8, 0.7], dtype=np.float32)
    improved = np.array([0.97, 0.8, 0.63], dtype=np.float32)
    residual = check_theorem(original, improved, 1).residual
    assert RESIDUAL_TOLERANCE < abs(residual) < 3 * 2**-23
    with pytest.raises(InputError, match="a sum of"):
        # The same numbers as float64 are no rounding of one another.
        check_theorem(original.astype(np.float64), improved.astype(np.float64), 1)


def test_the_json_has_the_contract_s_keys_and_exact_text() -> None:
    result = check_theorem("0.9,0.8,0.7,0.6", "1,1,0.6,0.4", 2).to_json()
    assert [list(move) for move in result["certificate"]] == [["source", "destination", "amount", "gain"]] * 2
    assert sum(Fraction(move["gain"]) for move in result["certificate"]) == Fraction(result["gain_exact"])
    assert result["hypothesis"] == "descending"
    assert result["violations"] == []
    assert result["certified"] is True
    assert result["gain"] == float(Fraction(result["gain_exact"]))
    assert result["gain"] == pytest.approx(result["expected_improved"] - result["expected_original"])


def test_latex_shows_fractions_and_rounds_what_is_long() -> None:
    difference = r"\mathbb{E}_q[L] - \mathbb{E}_p[L]"

    def latex(*case: Any) -> str:
        return check_theorem(*case).to_latex()

    assert latex("0.81,0.16,0.99", "0.97,0,0.99", 1) == difference + r" = -\frac{6119}{62500}"
    assert latex("1/2,1/2", "1/2,1/2", 1) == difference + " = 0"
    assert latex([0.3, 0.3, 0.3], [0.1 + 0.3, 0.3, 0.2], 1) == difference + r" \approx 0.127"
    tiny = ["1/2", Fraction(1, 10**9)], [Fraction(1, 2) + Fraction(1, 10**9), 0], 1
    assert latex(*tiny) == difference + r" \approx 5 \times 10^{-10}"


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_every_statement_is_latex_that_can_be_drawn(name: str) -> None:
    from matplotlib.mathtext import MathTextParser

    MathTextParser("path").parse(f"${STATEMENTS[name]}$")


def test_results_cannot_be_changed() -> None:
    check = check_theorem("0.5,0.4", "0.6,0.3", 1)
    assert isinstance(check, TheoremCheck)
    with pytest.raises(AttributeError):
        check.gain = 1.0  # type: ignore[misc]
