from __future__ import annotations

import pytest

import gumiho_theory
from theorem_commands import run, run_json


def test_a_counterexample_is_found_from_three_positions_on_and_confirmed_by_check() -> None:
    found = run_json("counterexample", "--depth", 3, "--seed", 5)
    assert found["found"] is True
    assert found["gain"] < 0
    check = gumiho_theory.check_theorem(found["original"], found["improved"], found["early"])
    assert check.gain == pytest.approx(found["gain"], abs=1e-12)
    assert check.hypothesis is None
    for depth in (1, 2):
        none = run_json("counterexample", "--depth", depth, "--seed", 5, status=1)
        assert none == {"found": False, "original": None, "improved": None, "early": None, "gain": None}
    assert "found" in run("counterexample", "--depth", 3)
