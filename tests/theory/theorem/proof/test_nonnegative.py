from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_theory.theorem.proof.nonnegative import confirms, fact_symbols, find_witness, is_identity

X, Y = sympy.symbols("x y")
UNIT_SQUARE = (X, 1 - X, Y, 1 - Y)

PROVABLE = {
    "a fact, scaled": 3 * X,
    "a sum of facts": 2 - X - Y,
    "a product of facts": X * (1 - X) * Y,
    "concave between its ends": X + Y - X**2 * Y,
    "needs both ends of an interval": 1 - X - Y + 2 * X * Y,
    "zero": sympy.Integer(0),
}
UNPROVABLE = {
    "negative everywhere": sympy.Integer(-1),
    "negative at one corner": 1 - X - Y,
    "negative inside only": (X - sympy.Rational(1, 2)) ** 2 - sympy.Rational(1, 100),
    "negative by a hair": X * Y - sympy.Rational(1, 10**9),
}


@pytest.mark.parametrize("polynomial", PROVABLE.values(), ids=PROVABLE)
def test_a_witness_is_found_and_confirmed(polynomial: Any) -> None:
    witness = find_witness(sympy.sympify(polynomial), UNIT_SQUARE, (X, Y))
    assert witness is not None
    assert confirms(witness, polynomial, UNIT_SQUARE)


@pytest.mark.parametrize("polynomial", UNPROVABLE.values(), ids=UNPROVABLE)
def test_what_is_false_has_no_witness(polynomial: Any) -> None:
    assert find_witness(polynomial, UNIT_SQUARE, (X, Y)) is None


def test_what_needs_a_missing_fact_has_no_witness() -> None:
    assert find_witness(1 - X * Y, UNIT_SQUARE, (X, Y)) is not None
    assert find_witness(1 - X * Y, UNIT_SQUARE[:3], (X, Y)) is None


S_1, S_2, S_3, S_4 = fact_symbols(4)
FORGED = {
    "does not equal the polynomial": S_1 + S_2,
    "off by a hair": S_1 * S_4 + S_3 + sympy.Rational(1, 10**12),
    "subtracts": S_1 + S_3 - S_1 * S_3,
    "uses a symbol that is no fact": S_1 + sympy.Symbol("s_9"),
    "uses the variables": X + Y - X * Y,
    "is complex": S_1 * S_4 + S_3 * sympy.I,
}


def test_the_true_witness_of_the_forged_ones_passes() -> None:
    assert confirms(S_1 * S_4 + S_3, X + Y - X * Y, UNIT_SQUARE)


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_witness_is_rejected(forged: Any) -> None:
    assert not confirms(forged, X + Y - X * Y, UNIT_SQUARE)


@pytest.mark.parametrize("witness", [S_1 / S_4, sympy.sqrt(S_1), S_1**S_4, sympy.exp(S_1), sympy.Float(0.5) * S_1])
def test_a_witness_may_only_add_multiply_and_raise_to_whole_powers(witness: Any) -> None:
    facts = (X, 1 - X, Y, 1 - Y)
    assert not confirms(witness, witness.xreplace(dict(zip(fact_symbols(4), facts, strict=True))), facts)


def test_identities_are_told_from_near_identities() -> None:
    assert is_identity((X + Y) ** 2 - X**2 - 2 * X * Y - Y**2)
    assert not is_identity((X + Y) ** 2 - X**2 - 2 * X * Y)
    assert is_identity(sympy.Integer(0)) and not is_identity(sympy.Rational(1, 10**20))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3)), max_size=5))
def test_whatever_is_proved_is_true_on_a_grid(terms: list[tuple[int, int, int]]) -> None:
    polynomial = sympy.Add(*(c * X**i * Y**j for i, j, c in terms))
    witness = find_witness(polynomial, UNIT_SQUARE, (X, Y))
    grid = np.linspace(0, 1, 21)
    x, y = np.meshgrid(grid, grid)
    values = sum((c * x**i * y**j for i, j, c in terms), np.zeros_like(x))
    if witness is not None:
        assert confirms(witness, polynomial, UNIT_SQUARE)
        assert values.min() > -1e-12
