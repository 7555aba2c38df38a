"""The one command that is run on a large accelerator works, as far as a CPU can tell: there a mistake costs an hour."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from gumiho_theory import CostProfile

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"
METHODS = ["gumiho", "eagle", "medusa", "hydra", "draft-model", "ngram"]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def last_line(text: str) -> dict:
    return json.loads(text.splitlines()[-1])


@pytest.mark.slow
def test_the_tiny_run_checks_measures_and_compiles_all_that_the_large_one_does(tmp_path):
    command = [sys.executable, str(SCRIPT), "--tiny", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    result = last_line(done.stdout)
    assert (result["failed"], result["left_out"], result["different"]) == ([], [], 0)
    assert json.loads((tmp_path / "gpu_check.json").read_text()) == result
    parts = result["parts"]
    for dtype in ("float32", "bfloat16"):
        rows = parts[f"exactness random {dtype}"]["rows"]
        assert {(row["method"], row["structure"]) for row in rows} == {
            (method, kind) for method in METHODS for kind in ("chain", "static", "tree")
        }
        assert all(row["equal"] + row["tie"] == 1 for row in rows)
        assert max(row["tokens_per_cycle"] for row in rows) > 3  # some drafts are accepted
    for method in METHODS:
        profile = CostProfile.read(tmp_path / f"profile-tiny-shape-{method}.json")
        assert profile.verify_nodes == (1, 8, 32)
        assert parts[f"profile tiny-shape {method}"]["baseline_ms"] == 1e3 * profile.baseline_seconds
    assert parts["compiled tiny-shape eagle"]["ratio"] > 0


def test_the_large_run_has_every_method_on_every_shape(script, tmp_path):
    names = [name for name, _ in script.plan(script.Device("cpu", tiny=False), list(script.LARGE), tmp_path)]
    assert [n for n in names if n.startswith("profile")] == [
        f"profile {shape} {method}" for shape in ("vicuna-7b", "llama2-13b", "llama3-8b") for method in METHODS
    ]


def test_no_part_begins_when_time_is_up_and_what_was_left_out_is_said(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(script, "plan", lambda *_: [("first", lambda: pytest.fail("begun"))])
    script.main(tmp_path, minutes=0.0, tiny=True)
    assert last_line(capsys.readouterr().out)["left_out"] == ["first"]


def test_a_part_that_fails_is_named_and_the_others_run_on(script, tmp_path, monkeypatch, capsys):
    def broken() -> dict:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(script, "plan", lambda *_: [("first", broken), ("second", lambda: {"ratio": 0.5})])
    with pytest.raises(typer.Exit) as ended:
        script.main(tmp_path, minutes=7.0, tiny=True)
    assert ended.value.exit_code == 1
    result = last_line(capsys.readouterr().out)
    assert result["failed"] == ["first"]
    assert result["parts"]["first"]["error"] == "RuntimeError: out of memory"
    assert result["parts"]["second"]["ratio"] == 0.5


def test_an_output_that_is_different_fails_the_run(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "plan", lambda *_: [("first", lambda: {"different": 1})])
    with pytest.raises(typer.Exit) as ended:
        script.main(tmp_path, minutes=7.0, tiny=True)
    assert ended.value.exit_code == 1
