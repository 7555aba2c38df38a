from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from typing import Any

import pytest
import sympy

from gumiho_theory import InputError
from gumiho_theory.theorem.proof import smt
from gumiho_theory.theorem.proof.depths import depth_claims, theorem_claim
from gumiho_theory.theorem.proof.obligations import general_claims
from gumiho_theory.theorem.proof.symbolic import discharge

needs_z3 = pytest.mark.skipif(
    importlib.util.find_spec("z3") is None, reason="the extra smt (z3-solver) is not installed"
)


@needs_z3
def test_z3_refutes_the_negation_of_every_general_claim_and_of_the_theorem_up_to_depth_three() -> None:
    verdicts = {refutation.name: refutation.verdict for refutation in smt.prove_by_refutation(3)}
    assert set(verdicts.values()) == {"proved"}
    assert {claim.name for claim in general_claims()} < set(verdicts)
    assert {"theorem_D2_d1", "theorem_D3_d1", "theorem_D3_d2"} < set(verdicts)


@needs_z3
@pytest.mark.parametrize("claim", [c for c in depth_claims(4) if c.name.startswith("move")], ids=lambda c: c.name)
def test_z3_settles_the_single_moves_one_depth_further(claim: Any) -> None:
    assert smt.refute(discharge(claim)).verdict == "proved"


@needs_z3
def test_z3_does_not_pass_off_giving_up_as_a_proof() -> None:
    obligation = discharge(theorem_claim(4, 2))
    assert obligation.proved
    assert smt.refute(obligation, timeout_seconds=0.1).verdict == "unknown"


@needs_z3
def test_z3_finds_where_the_theorem_fails_without_order() -> None:
    claim = theorem_claim(3, 1)
    p = {i: sympy.Symbol(f"p_{i}") for i in (1, 2, 3)}
    order = (sympy.Ge(p[1] - p[2], 0), sympy.Ge(p[2] - p[3], 0))
    kept = tuple(condition for condition in claim.domain if condition not in order)
    unordered = replace(claim, domain=(*kept, sympy.Ge(1 - p[2], 0), sympy.Ge(1 - p[3], 0)), witness=None)
    refutation = smt.refute(discharge(unordered))
    assert refutation.verdict == "refuted"
    assert refutation.counterexample is not None
    rate = {name: value for name, value in refutation.counterexample.items()}
    before = [rate["p_1"], rate["p_2"], rate["p_3"]]
    after = [before[0] + rate["z_1_2"] + rate["z_1_3"], before[1] - rate["z_1_2"], before[2] - rate["z_1_3"]]
    assert all(0 <= value <= 1 for value in before + after)
    assert min(rate["z_1_2"], rate["z_1_3"]) >= 0

    def expected(p: list[Any]) -> Any:
        return p[0] + p[0] * p[1] + p[0] * p[1] * p[2]

    assert expected(after) < expected(before)


@needs_z3
def test_z3_refutes_false_identities_and_false_bounds_whatever_they_are_marked_as() -> None:
    claims = {claim.name: claim for claim in general_claims()}
    for name in ("move_identity", "plan_step", "plan_sign", "tail_step"):
        obligation = discharge(claims[name])
        false = replace(obligation, srepr=sympy.srepr(sympy.sympify(obligation.srepr) - sympy.Rational(1, 100)))
        assert false.proved
        refutation = smt.refute(false)
        assert refutation.verdict == "refuted"
        assert refutation.counterexample is not None


@needs_z3
def test_an_irrational_counterexample_is_given_only_if_its_rational_neighbour_fails_too() -> None:
    x = sympy.Symbol("x")
    base = discharge({claim.name: claim for claim in general_claims()}["gain_step"])
    on_a_line = (sympy.Ge(x**2 - 2, 0), sympy.Ge(2 - x**2, 0))
    only_irrational = replace(base, srepr=sympy.srepr(-(x**2)), domain=tuple(map(sympy.srepr, on_a_line)))
    assert smt.refute(only_irrational) == smt.Refutation("gain_step", "refuted", None)


def test_without_z3_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(InputError, match=r"z3-solver: found none, wanted it installed \(pip install 'gumiho\[smt\]'\)"):
        smt.prove_by_refutation(2)
