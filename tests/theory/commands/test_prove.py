from __future__ import annotations

from types import SimpleNamespace

import pytest

from theorem_commands import run, run_json


def test_the_proof_is_complete_and_its_obligations_are_exported() -> None:
    result = run_json("prove", "--max-depth", 2)
    assert result["proved"] is True
    keys = {"name", "statement", "srepr", "relation", "domain", "proved"}
    assert all(keys <= set(one) and one["proved"] for one in result["obligations"])
    assert {one["relation"] for one in result["obligations"]} <= {">=0", "==0"}


def test_an_obligation_that_is_not_proved_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"name": "a", "statement": "0", "srepr": "Integer(0)", "relation": "==0", "domain": [], "proved": False}
    report = SimpleNamespace(to_json=lambda: {"proved": False, "obligations": [one]})
    monkeypatch.setattr("gumiho_theory.theorem.proof.symbolic.prove", lambda max_depth: report)
    assert run_json("prove", status=1)["proved"] is False
    assert "a           ==0       no" in run("prove", status=1)
