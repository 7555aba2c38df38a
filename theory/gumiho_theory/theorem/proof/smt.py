"""A second opinion on the proof: Z3 refutes the negation of an obligation (optional extra ``smt``, z3-solver).

Z3 decides polynomial inequalities over the reals by its own means (nlsat, cylindrical algebraic decomposition) and
reads nothing but the exported text of an obligation. In a fraction of a second each it settles the claims of the proof
for every D, the whole theorem at D = 2 and 3, and the single moves up to D = 4 (most of those at D = 5 and 6); the
whole theorem at D = 4, as one query, it gives up. When an obligation is false it returns a point where it fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from gumiho_theory.errors import InputError
from gumiho_theory.theorem.proof.symbolic import Obligation, obligations


@dataclass(frozen=True)
class Refutation:
    """What Z3 says about one obligation.

    Parameters
    ----------
    name : str
        The obligation's.
    verdict : {"proved", "refuted", "unknown"}
        "proved": the negation has no solution; "refuted": it has one; "unknown": Z3 gave up or ran out of time.
    counterexample : mapping of str to Fraction, or None
        A point of the domain where the relation fails, re-checked in rationals; None when not refuted, or when the
        only point found is irrational and its rational neighbour does not do.
    """

    name: str
    verdict: Literal["proved", "refuted", "unknown"]
    counterexample: Mapping[str, Fraction] | None


def refute(obligation: Obligation, timeout_seconds: float = 60.0) -> Refutation:
    """Ask Z3 for a point of the domain where the obligation fails.

    `obligation`: Its text is what is read; whether it is marked as proved makes no difference. `timeout_seconds`: After
    which the verdict is "unknown" (Z3 may take somewhat longer to stop). Raises InputError: When z3-solver is not
    installed.
    """
    import sympy

    z3 = _z3()
    expression = sympy.sympify(obligation.srepr)
    domain = [sympy.sympify(condition) for condition in obligation.domain]
    numerator, denominator = sympy.fraction(sympy.together(expression))
    reals = {symbol: z3.Real(str(symbol)) for symbol in sorted(sympy.Tuple(expression, *domain).free_symbols, key=str)}
    # nlsat is not the default, and the default gives up early.
    solver = z3.SolverFor("QF_NRA")
    solver.set("timeout", round(1000 * timeout_seconds))
    for condition in domain:
        left = _translate(condition.lhs, reals, z3)
        solver.add(left > 0 if isinstance(condition, sympy.StrictGreaterThan) else left >= 0)
    # The sign of numerator / denominator is that of their product, and so are its zeros.
    product = _translate(numerator * denominator, reals, z3)
    solver.add(product < 0 if obligation.relation == ">=0" else product != 0)
    answer = solver.check()
    if answer == z3.sat:
        point = {
            symbol: _rational(solver.model().eval(real, model_completion=True), z3) for symbol, real in reals.items()
        }
        return Refutation(obligation.name, "refuted", _checked(expression, domain, obligation.relation, point))
    return Refutation(obligation.name, "proved" if answer == z3.unsat else "unknown", None)


def prove_by_refutation(max_depth: int = 3, timeout_seconds: float = 60.0) -> Iterator[Refutation]:
    """Put the obligations of ``symbolic.prove(max_depth)`` to Z3, one by one.

    `max_depth`: At least 1. Beyond 3 the single moves are still settled and the whole theorem is not.
    `timeout_seconds`: For each obligation. Raises InputError: When z3-solver is not installed or max_depth is not a
    whole number of at least 1.
    """
    _z3()
    return (refute(obligation, timeout_seconds) for obligation in obligations(max_depth))


def _z3() -> Any:
    try:
        import z3
    except ImportError:
        raise InputError("Python package z3-solver", "none", "it installed (pip install 'gumiho[smt]')") from None
    return z3


def _translate(expression: Any, reals: Mapping[Any, Any], z3: Any) -> Any:
    if expression.is_Symbol:
        return reals[expression]
    if expression.is_Rational:
        return z3.RealVal(str(expression))
    if expression.is_Pow:
        return _translate(expression.base, reals, z3) ** int(expression.exp)
    parts = [_translate(part, reals, z3) for part in expression.args]
    return z3.Sum(parts) if expression.is_Add else z3.Product(parts)


def _rational(value: Any, z3: Any) -> Fraction:
    exact = value.approx(30) if z3.is_algebraic_value(value) else value
    return Fraction(exact.numerator_as_long(), exact.denominator_as_long())


def _checked(
    expression: Any, domain: list[Any], relation: str, point: Mapping[Any, Fraction]
) -> dict[str, Fraction] | None:
    import sympy

    exact = {symbol: sympy.Rational(value.numerator, value.denominator) for symbol, value in point.items()}
    value = expression.subs(exact)
    fails = value < 0 if relation == ">=0" else value != 0
    inside = all(condition.subs(exact) == sympy.true for condition in domain)
    return {str(symbol): value for symbol, value in point.items()} if inside and fails else None
