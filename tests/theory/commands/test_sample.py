from __future__ import annotations

from theorem_commands import run, run_json


def test_samples_are_counted_and_the_worst_is_shown() -> None:
    result = run_json("sample", "--depth", 3, "--cases", 2000, "--seed", 1)
    assert {"cases", "violations", "worst"} <= set(result)
    assert (result["cases"], result["violations"]) == (2000, 0)
    assert {"original", "improved", "early", "gain"} <= set(result["worst"])
    assert run_json("sample", "--depth", 3, "--cases", 2000, "--seed", 1) == result
    any_order = run_json("sample", "--depth", 7, "--cases", 20000, "--seed", 1, "--any-order")
    assert any_order["violations"] > 0
    assert any_order["worst"]["gain"] < 0
    assert "violations" in run("sample", "--depth", 3, "--cases", 100)
