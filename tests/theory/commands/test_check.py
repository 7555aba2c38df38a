from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import gumiho_theory
from gumiho_theory import Trace
from theorem_commands import GAIN, LOSS, refused, run, run_json


def test_a_change_that_loses_exits_with_1_and_shows_why() -> None:
    result = run_json("check", *LOSS, status=1)
    assert result["hypothesis"] is None
    assert len(result["violations"]) == 2
    assert (result["gain"], result["gain_exact"], result["certified"]) == (-0.097904, "-6119/62500", False)
    assert result["certificate"] == [{"source": 2, "destination": 1, "amount": "4/25", "gain": "-6119/62500"}]
    printed = run("check", *LOSS, status=1)
    assert "hypothesis: fails\n  early rate 1 (0.81) is below later rate 3 (0.99)\n" in printed
    assert "gain: -0.097904 = -6119/62500" in printed
    assert "not certified: 1 of 1 moves lose" in printed


def test_a_change_under_the_hypothesis_is_certified_with_its_exact_gain() -> None:
    result = run_json("check", *GAIN)
    keys = ("hypothesis", "violations", "expected_original", "expected_improved", "gain", "gain_exact")
    assert set(result) >= {*keys, "certificate", "certified"}
    assert (result["hypothesis"], result["gain_exact"], result["certified"]) == ("descending", "181/1000", True)
    assert sum(Fraction(move["gain"]) for move in result["certificate"]) == Fraction(181, 1000)
    printed = run("check", *GAIN)
    assert "from  to  amount  gain\n3     1   0.1     0.181\n" in printed
    assert "certified: no move loses" in printed


def test_a_change_of_nothing_neither_gains_nor_loses() -> None:
    same = ("--original", "0.5,0.4", "--improved", "0.5,0.4", "--early", "1")
    assert run_json("check", *same)["certificate"] == []
    assert "gain: 0 = 0" in run("check", *same)


def test_without_the_hypothesis_a_change_that_gains_exits_with_0() -> None:
    rising = ("--original", "0.5,0.6", "--improved", "0.6,0.5", "--early", "1")
    result = run_json("check", *rising)
    assert result["hypothesis"] is None
    assert result["certified"] is True
    assert result["gain"] == 0.1


def test_a_gain_of_many_thousand_digits_is_printed_whole() -> None:
    # 120 decimals of 40 places that end in 1: nothing cancels in their product.
    before = [6 * 10**39 + 10 * i + 1 for i in range(120, 0, -1)]
    after = [before[0] + 10, *before[1:-1], before[-1] - 10]
    texts = [",".join(f"0.{n:040d}" for n in numbers) for numbers in (before, after)]
    result = run_json("check", "--original", texts[0], "--improved", texts[1], "--early", 1)
    assert len(result["gain_exact"]) > 2 * 4300
    assert result["gain_exact"] == result["certificate"][0]["gain"]
    assert result["gain"] > 0
    assert "gain: " in run("check", "--original", texts[0], "--improved", texts[1], "--early", 1)


@pytest.mark.parametrize(
    "original, improved, early, message",
    [
        ("0.5,0.4", "0.5", "1", "--improved: found a length of 1, wanted 2, the length of original"),
        ("0.5,0.4", "0.6,0.2", "1", "--improved: found a sum of 0.8, wanted 0.9"),
        ("0.5,0.4,0.3", "0.4,0.4,0.4", "1", "--improved, position 1: found 0.4, wanted at least 0.5"),
        ("0.5,0.4", "0.5,0.4", "0", "--early: found 0, wanted a whole number from 1 to 1"),
        ("0.5,0.4", "0.5,0.4", "2", "--early: found 2, wanted a whole number from 1 to 1"),
        ("1.5,0.4", "1.5,0.4", "1", "--original, position 1: found 1.5, wanted a rate in [0, 1]"),
        ("-0.1,0.4", "0,0.3", "1", "--original, position 1: found -0.1, wanted a rate in [0, 1]"),
        ("nan,0.4", "0.5,0.4", "1", "--original, position 1: found 'nan', wanted a decimal or a fraction"),
        ("", "0.5,0.4", "1", "--original, position 1: found ''"),
        ("0.5,0.4", "", "1", "--improved, position 1: found ''"),
    ],
)
def test_bad_rates_are_refused_under_the_option_s_name(original: str, improved: str, early: str, message: str) -> None:
    found = refused("check", "--original", original, "--improved", improved, "--early", early)
    assert found.startswith(message)
    assert "\n" not in found


def test_check_wants_rates_or_a_log_and_not_both(tmp_path: Path) -> None:
    assert refused("check").startswith("check: found no --original, --improved, --early, wanted a log")
    assert refused("check", *LOSS[:4]).startswith("check: found no --early, wanted")
    assert refused("check", tmp_path / "t.parquet", "--early", "1").startswith("check: found a log and rates")


def test_a_log_that_cannot_be_read_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text('{"schema": "gumiho.acceptance_counts/1"}')
    (tmp_path / "broken.json").write_text("{")
    for name in ("missing.parquet", "missing.json", "broken.json", "counts.json"):
        found = refused("check", tmp_path / name)
        assert found.startswith(str(tmp_path / name))
        assert found.count(str(tmp_path)) == 1


def test_a_trace_and_its_counts_get_the_same_verdict(tmp_path: Path, random_rows: Callable[..., Any]) -> None:
    trace = Trace.from_rows(
        [row | {"prompt_id": f"{row['prompt_id']}-{s}"} for s in range(20) for row in random_rows(s)]
    )
    trace.write(tmp_path / "trace.parquet")
    (tmp_path / "counts.json").write_text(json.dumps(trace.counts_by_prompt().to_json()))
    verdict = run_json("check", tmp_path / "trace.parquet")
    assert verdict == run_json("check", tmp_path / "counts.json")
    for key in verdict:
        assert key in run("check", tmp_path / "trace.parquet")


def test_check_loads_none_of_the_heavy_libraries() -> None:
    program = (
        "import sys, typer\n"
        "from gumiho_theory.commands import register\n"
        "app = typer.Typer()\n"
        "register(app)\n"
        f"app(['theorem', 'check', *{GAIN!r}, '--json'], standalone_mode=False)\n"
        "heavy = {'torch', 'scipy', 'pandas', 'pyarrow', 'matplotlib', 'seaborn', 'sympy', 'z3', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    folder = str(Path(gumiho_theory.__file__).parents[1])
    code = f"import sys; sys.path.insert(0, {folder!r})\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
