"""The early-token theorem proved by machine: obligations for every D, then the whole theorem at each small D.

`obligations` states the argument for every D and its claims, `depths` the theorem at one
depth; here they are discharged. An identity is expanded to zero, an inequality has a witness that
`nonnegative` checks. Each obligation is exported as text (SymPy's srepr), its witness too, so that it can
be evaluated and its proof checked without this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gumiho_theory.errors import InputError
from gumiho_theory.theorem.proof.depths import depth_claims
from gumiho_theory.theorem.proof.nonnegative import Expression, confirms, find_witness, is_identity
from gumiho_theory.theorem.proof.obligations import Claim, general_claims


@dataclass(frozen=True)
class Obligation:
    """One statement of the proof and whether the machine proved it.

    Parameters
    ----------
    name : str
    statement : str
        LaTeX, without delimiters and without decimal numbers.
    role : str
        What it is for in the argument, and of which induction it is the start or the step.
    srepr : str
        SymPy srepr of the expression that the relation is about.
    relation : str
        ">=0" or "==0": claimed wherever all conditions of the domain hold.
    domain : tuple of str
        SymPy srepr of the conditions, all ``f >= 0`` or ``f > 0``; none: all reals.
    proved : bool
    witness : str or None
        Of a proved ">=0": srepr of an expression in s_1, s_2, ... without negative numbers, equal to the
        expression (times its denominator squared, if it has one) when s_i is the left side of the i-th condition.
    """

    name: str
    statement: str
    role: str
    srepr: str
    relation: str
    domain: tuple[str, ...]
    proved: bool
    witness: str | None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        return {**vars(self), "domain": list(self.domain)}


@dataclass(frozen=True)
class ProofReport:
    """The obligations of the theorem for every D, and of the theorem at D = 2 ... max_depth.

    Parameters
    ----------
    max_depth : int
    obligations : tuple of Obligation
    """

    max_depth: int
    obligations: tuple[Obligation, ...]

    @property
    def proved(self) -> bool:
        """Whether every obligation is proved."""
        return all(obligation.proved for obligation in self.obligations)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        return {
            "proved": self.proved,
            "max_depth": self.max_depth,
            "obligations": [obligation.to_json() for obligation in self.obligations],
        }


def discharge(claim: Claim) -> Obligation:
    """Try to prove one claim: it is not when no witness is found, or the one given does not pass the check."""
    import sympy

    facts = [condition.lhs for condition in claim.domain]
    positive = {condition.lhs for condition in claim.domain if isinstance(condition, sympy.StrictGreaterThan)}
    # Looked up in the expression as it stands: put together, a denominator may cancel that is zero somewhere.
    divisors = {power.base for power in claim.expression.atoms(sympy.Pow) if power.exp.is_negative}
    numerator, denominator = sympy.fraction(sympy.together(claim.expression))
    witness: Expression | None = None
    proved = divisors <= positive
    if claim.relation == "==0":
        proved = proved and is_identity(numerator)
    elif proved:
        # numerator / denominator has the sign of their product.
        goal = numerator * denominator
        witness = claim.witness() if claim.witness else find_witness(goal, facts, claim.variables)
        proved = witness is not None and confirms(witness, goal, facts)
    return Obligation(
        name=claim.name,
        statement=claim.statement,
        role=claim.role,
        srepr=sympy.srepr(claim.expression),
        relation=claim.relation,
        domain=tuple(sympy.srepr(condition) for condition in claim.domain),
        proved=proved,
        witness=sympy.srepr(witness) if proved and witness is not None else None,
    )


def obligations(max_depth: int) -> Iterator[Obligation]:
    """Discharge the claims of `prove` one by one, so that a caller can show how far the proof has come."""
    if isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < 1:
        raise InputError("max depth", max_depth, "a whole number, at least 1")
    return _discharged(max_depth)


def _discharged(max_depth: int) -> Iterator[Obligation]:
    yield from map(discharge, general_claims())
    for depth in range(2, max_depth + 1):
        yield from map(discharge, depth_claims(depth))


def prove(max_depth: int = 6) -> ProofReport:
    """Prove the early-token theorem: for every D, then written out at each D up to `max_depth`.

    Parameters
    ----------
    max_depth : int
        At least 1. D = 1 has no early and late positions, so 1 leaves the proof for every D alone.

    Raises
    ------
    InputError
        When max_depth is not a whole number of at least 1.
    """
    return ProofReport(max_depth, tuple(obligations(max_depth)))
