"""The closed forms beside SymPy's own algebra."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy

from gumiho_theory import sensitivity, tau


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 10])
def test_sensitivities_equal_symbolic_derivatives(depth: int) -> None:
    symbols = sympy.symbols(f"p_1:{depth + 1}")
    expression = 1 + sum(sympy.prod(symbols[:i]) for i in range(1, depth + 1))
    rng = np.random.default_rng(depth)
    for _ in range(5):
        # Rates with few digits, zeros and ones among them: exact in SymPy, and no quotient may be formed.
        rates = rng.choice([0, 1, 0.25, 0.5, 0.8125], size=depth)
        exact = dict(zip(symbols, (sympy.Rational(Fraction(r)) for r in rates.tolist()), strict=True))
        expected = [float(sympy.diff(expression, symbol).subs(exact)) for symbol in symbols]
        np.testing.assert_allclose(sensitivity(rates), expected, atol=1e-12, rtol=0)
        assert abs(float(tau(rates)) - float(expression.subs(exact))) < 1e-12
