"""Prove that a polynomial is never negative where other polynomials, the facts, are not.

The proof is a witness: an expression made of non-negative rationals, sums, products, powers, and one symbol s_i for
each fact. With the facts put in for the symbols it must equal the polynomial, identically; then the polynomial cannot
be negative where the facts are not. `confirms` checks no more than this and trusts nobody, so neither the search
below nor any other source of witnesses has to be trusted. What is false has no witness and comes back without one.

SymPy is imported inside the functions: it takes about as long to load as all the rest of the package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

# SymPy ships no types: its expressions and ring elements are Any.
Expression = Any
Polynomial = Any

# A search that meets more goals than this is given up. The theorem's own meet at most 56 up to D = 6, and about twice
# as many with each further D. Counting goals, not seconds, makes the answer the same on every machine.
_MOST_GOALS = 1_000


def fact_symbols(count: int) -> tuple[Expression, ...]:
    """Return s_1 ... s_count, the symbols that stand for the facts in a witness."""
    import sympy

    return tuple(sympy.Symbol(f"s_{i}") for i in range(1, count + 1))


def is_identity(polynomial: Expression) -> bool:
    """Say whether a polynomial is zero for all values of its symbols, by expanding it over the rationals."""
    import sympy

    symbols = sorted(polynomial.free_symbols, key=str)
    # A sparse ring multiplies nested sums some twenty times faster than expand.
    return bool(sympy.ring(symbols, sympy.QQ)[0].from_expr(polynomial) == 0)


def confirms(witness: Expression, polynomial: Expression, facts: Sequence[Expression]) -> bool:
    """Check a witness, whatever its source.

    `witness`: In the symbols ``fact_symbols(len(facts))``. `polynomial`: Claimed to be at least 0 wherever every fact
    is. `facts`: Polynomials. Returns True when the witness cannot be negative and equals the polynomial once the facts
    are put in.
    """
    symbols = fact_symbols(len(facts))
    if not _cannot_be_negative(witness, frozenset(symbols)):
        return False
    return is_identity(witness.xreplace(dict(zip(symbols, facts, strict=True))) - polynomial)


def _cannot_be_negative(witness: Expression, symbols: frozenset[Expression]) -> bool:
    if witness.is_Rational:
        return bool(witness >= 0)
    if witness.is_Symbol:
        return witness in symbols
    if witness.is_Pow:
        whole = bool(witness.exp.is_Integer and witness.exp > 0)
        return whole and _cannot_be_negative(witness.base, symbols)
    return bool(witness.is_Add or witness.is_Mul) and all(_cannot_be_negative(arg, symbols) for arg in witness.args)


def find_witness(
    polynomial: Expression, facts: Sequence[Expression], variables: Sequence[Expression]
) -> Expression | None:
    """Search for a witness that `polynomial` is at least 0 wherever every fact is.

    `facts`: Polynomials known to be at least 0. `variables`: Every symbol of the polynomial and of the facts; the
    search eliminates those in front first, each by the facts in which it is the first. Returns in the symbols
    ``fact_symbols(len(facts))``; None when the search finds none.
    """
    import sympy

    ring = sympy.ring(variables, sympy.QQ)[0]
    return _Search(ring, [ring.from_expr(fact) for fact in facts]).prove(ring.from_expr(polynomial))


class _Search:
    """Depth-first search by five rules; each makes a goal F of simpler goals by an identity.

    fact      F = c g, g a fact and c > 0
    monomials F has positive coefficients only, in variables that are facts themselves
    factors   F = c F_1 F_2 ..., c > 0: prove every factor
    interval  v and 1 - v are facts: F = F(v=0) (1 - v) + F(v=1) v + K v (1 - v): prove the three
    division  g = c (v - root) is a fact: F = F(v=root) + Q g: prove the two
    """

    def __init__(self, ring: Any, facts: Sequence[Polynomial]) -> None:
        self.ring = ring
        self.facts = list(zip(fact_symbols(len(facts)), facts, strict=True))
        self.symbols = {fact: symbol for symbol, fact in self.facts}
        self.roots = self.solved()
        self.found: dict[Polynomial, Expression | None] = {}

    def prove(self, goal: Polynomial) -> Expression | None:
        if goal not in self.found:
            if len(self.found) >= _MOST_GOALS:
                return None
            # Failed until proved: a goal met again below itself must not be its own reason.
            self.found[goal] = None
            rules = (self.by_fact, self.by_monomials, self.by_factors, self.by_variables)
            self.found[goal] = next((witness for rule in rules for witness in rule(goal)), None)
        return self.found[goal]

    def prove_all(self, goals: Sequence[Polynomial]) -> list[Expression] | None:
        witnesses = []
        for goal in goals:
            witness = self.prove(goal)
            if witness is None:
                return None
            witnesses.append(witness)
        return witnesses

    def by_fact(self, goal: Polynomial) -> Iterator[Expression]:
        for symbol, fact in self.facts:
            if goal and fact and goal.monic() == fact.monic() and goal.LC / fact.LC > 0:
                yield _number(goal.LC / fact.LC) * symbol

    def by_monomials(self, goal: Polynomial) -> Iterator[Expression]:
        import sympy

        terms = []
        for exponents, coefficient in goal.items():
            used = [(self.symbols.get(v), power) for v, power in zip(self.ring.gens, exponents, strict=True) if power]
            if coefficient < 0 or any(symbol is None for symbol, _ in used):
                return
            terms.append(_number(coefficient) * sympy.prod([symbol**power for symbol, power in used]))
        yield sympy.Add(*terms)

    def by_factors(self, goal: Polynomial) -> Iterator[Expression]:
        import sympy

        coefficient, factors = goal.factor_list()
        if sum(power for _, power in factors) < 2:
            return
        parts = []
        for factor, power in factors:
            sign = next((sign for sign in (1, -1) if self.prove(sign * factor) is not None), None)
            if sign is None:
                return
            coefficient *= sign**power
            parts.append(self.prove(sign * factor) ** power)
        if coefficient > 0:
            yield _number(coefficient) * sympy.prod(parts)

    def by_variables(self, goal: Polynomial) -> Iterator[Expression]:
        for index, variable in enumerate(self.ring.gens):
            if goal.degree(variable) > 0:
                yield from self.by_interval(goal, variable)
                yield from self.by_division(goal, index)

    def by_interval(self, goal: Polynomial, variable: Polynomial) -> Iterator[Expression]:
        low, high = self.symbols.get(variable), self.symbols.get(1 - variable)
        if low is None or high is None:
            return
        at_zero, at_one = goal.subs(variable, 0), goal.subs(variable, 1)
        bend = goal - at_zero * (1 - variable) - at_one * variable
        proofs = self.prove_all([at_zero, at_one, bend.exquo(variable * (1 - variable))])
        if proofs is not None:
            yield proofs[0] * high + proofs[1] * low + proofs[2] * low * high

    def by_division(self, goal: Polynomial, index: int) -> Iterator[Expression]:
        for symbol, slope, root in self.roots[index]:
            # Horner's scheme: goal = quotient * (variable - root) + remainder.
            remainder, quotient = self.ring.zero, self.ring.zero
            for coefficient in reversed(self.coefficients(goal, index)):
                quotient = quotient * self.ring.gens[index] + remainder
                remainder = remainder * root + coefficient
            proofs = self.prove_all([remainder, quotient / slope])
            if proofs is not None:
                yield proofs[0] + proofs[1] * symbol

    def solved(self) -> list[list[tuple[Expression, Any, Polynomial]]]:
        """Write facts as slope * (v - root), v their first variable and slope a number; by variable.

        Only the first, so that the root holds later variables alone and the search comes to an end.
        """
        roots: list[list[tuple[Expression, Any, Polynomial]]] = [[] for _ in self.ring.gens]
        for symbol, fact in self.facts:
            index = next((i for i, v in enumerate(self.ring.gens) if fact.degree(v) > 0), None)
            if index is not None:
                rest, *slopes = self.coefficients(fact, index)
                if len(slopes) == 1 and slopes[0].is_ground:
                    roots[index].append((symbol, slopes[0].LC, -rest / slopes[0].LC))
        return roots

    def coefficients(self, polynomial: Polynomial, index: int) -> list[Polynomial]:
        """Return the coefficients of one variable's powers, from the power 0 on."""
        parts = [self.ring.zero for _ in range(max(polynomial.degree(self.ring.gens[index]), 0) + 1)]
        for exponents, value in polynomial.terms():
            rest = (*exponents[:index], 0, *exponents[index + 1 :])
            parts[exponents[index]] = parts[exponents[index]] + self.ring({rest: value})
        return parts


def _number(value: Any) -> Expression:
    import sympy

    return sympy.Rational(int(value.numerator), int(value.denominator))
