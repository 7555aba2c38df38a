"""Predict, fit, forecast, validate: their JSON, their tables, their refusals, and what they import."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gumiho_theory import CostProfile, InputError, Trace

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def files(trace: Trace, tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    trace.write(folder / "trace.parquet")
    (folder / "counts.json").write_text(json.dumps(trace.counts_by_prompt().to_json()))
    CostProfile(
        target="t",
        drafter="d",
        device="cpu",
        dtype="float32",
        baseline_seconds=1.9e-3,
        verify_nodes=(1, 8),
        verify_seconds=(1.9e-3, 3.2e-3),
        draft_serial_seconds=0.6e-3,
        draft_parallel_seconds=0.5e-3,
        serial_steps=2,
        other_seconds=0.3e-3,
    ).write(folder / "profile.json")
    run("fit", folder / "trace.parquet", "-o", folder / "model.json")
    return folder


def test_predict_prints_the_contract_s_keys(run_json: Run) -> None:
    result = run_json("predict", "--rates", "0.8,0.7")
    assert result["survival"] == pytest.approx([0.8, 0.56])
    assert result["pmf"] == pytest.approx([0.2, 0.24, 0.56])
    assert result["sensitivity"] == pytest.approx([1.7, 0.8])
    assert (result["expected_accepted"], result["tau"]) == pytest.approx((1.36, 2.36))
    assert "cycle_ms" not in result
    times = ("--draft-ms", "0.5,0.4", "--verify-ms", "3", "--baseline-ms", "2")
    timed = run_json("predict", "--rates", "0.8,0.7,1/2", *times)
    assert (timed["serial_steps"], timed["cycle_ms"]) == (2, pytest.approx(4.4))
    assert timed["speedup"] == pytest.approx(timed["tau"] * 2 / 4.4)


def test_predict_writes_undefined_rates_as_null(run_json: Run) -> None:
    assert run_json("predict", "--rates", "0.5,0,0", "--survival")["conditional"] == [0.5, 0.0, None]


def test_fit_forecast_and_validate_agree_through_their_files(files: Path, run_json: Run) -> None:
    fitted = run_json("fit", files / "trace.parquet", "--model", "hazard", "-o", files / "hazard.json")
    assert {"model", "parameters", "log_likelihood", "heldout_log_likelihood", "n_cycles"} <= set(fitted)
    shown = run_json("traces", "show", files / "trace.parquet")
    assert fitted["parameters"]["conditional"] == shown["conditional"]
    forecasts = run_json("forecast", files / "hazard.json", "--lengths", "3,7,9")["forecasts"]
    assert [one["structure"] for one in forecasts] == ["chain:3", "chain:7", "chain:9"]
    assert [one["supported"] for one in forecasts] == [True, True, False]
    assert forecasts[2]["tau"] is None
    assert forecasts[2]["note"]
    validated = run_json("validate", files / "trace.parquet", "--holdout", "0.25", "--seed", "3")
    assert {"rows", "median_abs_error", "worst_abs_error", "sampling_floor", "coverage"} <= set(validated)
    assert validated["holdout_prompts"] == 16
    keys = {"model", "structure", "predicted", "lo", "hi", "measured", "relative_error", "inside"}
    assert all(set(row) == keys for row in validated["rows"])


def test_structures_follow_their_option_separated_by_spaces(files: Path, run_json: Run) -> None:
    spaced = run_json("forecast", files / "model.json", "--structures", "chain:2", "chain:5", "tree:total=9")
    lengths = run_json("forecast", files / "model.json", "--lengths", "2,5")
    assert spaced["forecasts"][:2] == lengths["forecasts"]
    assert spaced["forecasts"][2]["tau"] is None


def test_a_profile_adds_speed_ups_and_names_the_fastest(files: Path, run_json: Run) -> None:
    asked = ("forecast", files / "model.json", "--lengths", "1,5,7,9", "--profile", files / "profile.json")
    result = run_json(*asked)
    one, five, seven, nine = result["forecasts"]
    cycle = 2 * 0.6e-3 + 0.5e-3 + 3.2e-3 + 0.3e-3
    assert seven["speedup"] == pytest.approx(seven["tau"] * 1.9e-3 / cycle)
    assert seven["speedup_lo"] < seven["speedup"] < seven["speedup_hi"]
    assert nine["speedup"] is None
    supported = {row["structure"]: row["speedup"] for row in (one, five, seven)}
    assert result["best"] == max(supported, key=lambda name: supported[name])


def test_published_points_are_forecast_without_a_model(run_json: Run) -> None:
    asked = ("forecast", "--tau-by-length", "1:1.84,2:2.50,3:2.99", "--lengths", "3,4,8")
    three, four, eight = run_json(*asked)["forecasts"]
    assert three["tau"] == 2.99
    assert three["supported"]
    assert not eight["supported"]
    assert four["lo"] > 2.99 or four["lo"] < four["tau"] < four["hi"] < eight["hi"]


def test_a_structure_beyond_the_profile_has_no_speed_up_and_says_so(files: Path, run: Run, run_json: Run) -> None:
    run("fit", files / "trace.parquet", "--model", "geometric", "-o", files / "geometric.json")
    asked = ("forecast", files / "geometric.json", "--lengths", "8", "--profile", files / "profile.json")
    result = run_json(*asked)
    assert result["forecasts"][0]["speedup"] is None
    assert result["best"] is None
    assert "no speed-up" in result["forecasts"][0]["note"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "--rates", "0.8,0.7", "--draft-ms", "1", "--verify-ms", "3", "--baseline-ms", "2"),
        ("predict", "--rates", "0.5,0", "--survival"),
        ("traces", "show", "trace.parquet"),
        ("traces", "show", "counts.json"),
        ("forecast", "model.json", "--lengths", "3,9"),
        ("forecast", "model.json", "--structures", "chain:3", "--profile", "profile.json"),
        ("validate", "trace.parquet"),
    ],
)
def test_tables_are_printed_for_people(
    files: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], run: Run
) -> None:
    monkeypatch.chdir(files)
    text = run(*arguments)
    assert "tau" in text
    assert "{" not in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "--rates", "0.5,2"), "position 2"),
        (("predict", "--rates", "0.5", "--draft-ms", "1"), "--verify-ms"),
        (
            ("predict", "--rates", "0.5", "--draft-ms", "1", "--verify-ms", "1,2", "--baseline-ms", "1"),
            "one time",
        ),
        (("traces", "show", "absent.parquet"), "absent.parquet"),
        (("traces", "show", "absent.json"), "absent.json"),
        (("traces", "show", "text.parquet"), "text.parquet"),
        (("traces", "show", "text.json"), "text.json"),
        (("traces", "show", "model.json"), "model.json"),
        (("fit", "trace.parquet", "--model", "best", "-o", "out.json"), "hazard, geometric, mixture, hmm, rank"),
        (("fit", "counts.json", "--model", "hmm", "-o", "out.json"), "order of the cycles"),
        (("fit", "trace.parquet", "-o", "absent/out.json"), "absent"),
        (("forecast", "model.json"), "--lengths or --structures"),
        (("forecast", "--lengths", "1"), "--tau-by-length"),
        (("forecast", "model.json", "--lengths", "1", "--tau-by-length", "1:1.5"), "--tau-by-length"),
        (("forecast", "--structures", "chain:1", "--tau-by-length", "1:1.5"), "points are for chains"),
        (("forecast", "--lengths", "4", "--tau-by-length", "1:1.5,2"), "point 2"),
        (("forecast", "model.json", "--lengths", "1.5"), "3/2"),
        (
            ("forecast", "model.json", "--lengths", "1", "--structures", "chain:1"),
            "--lengths or --structures",
        ),
        (("forecast", "model.json", "chain:1", "--lengths", "1"), "--structures"),
        (("forecast", "model.json", "--lengths", "1,x"), "'x'"),
        (("forecast", "counts.json", "--lengths", "1"), "schema"),
        (("validate", "trace.parquet", "--holdout", "1"), "holdout"),
    ],
)
def test_bad_input_raises_one_line_that_names_the_place(
    files: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str, run: Run
) -> None:
    monkeypatch.chdir(files)
    for name in ("text.parquet", "text.json"):
        (files / name).write_text("not a table")
    with pytest.raises(InputError) as caught:
        run(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (files / "out.json").exists()


def test_every_help_text_has_an_example(run: Run) -> None:
    for command in (["predict"], ["traces", "show"], ["fit"], ["forecast"], ["validate"]):
        assert "Example: gumiho " + " ".join(command) in " ".join(run(*command, "--help").split())


def test_predict_imports_nothing_heavy() -> None:
    program = """
import sys
import typer
from gumiho_simulator.commands import register
app = typer.Typer()
register(app)
try:
    app(["predict", "--rates", "0.8,0.7", "--json"])
except SystemExit:
    pass
heavy = {"torch", "scipy", "pandas", "pyarrow", "matplotlib", "seaborn", "jinja2", "transformers", "sympy"}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"
    assert json.loads(done.stdout)["tau"] == pytest.approx(2.36)


def test_numpy_and_non_finite_values_become_plain_json() -> None:
    from gumiho_theory.json_output import dumps

    value = {"a": np.array([1.0, np.nan]), "b": (np.int64(3), np.inf), "c": np.bool_(True), "d": None}
    assert json.loads(dumps(value)) == {"a": [1.0, None], "b": [3, None], "c": True, "d": None}
