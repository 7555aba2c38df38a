"""The commands that weigh draft heads: their JSON, their tables, their refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gumiho_simulator.forecasting.fitting import fit
from gumiho_theory import CostProfile, InputError, Trace

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def files(traces: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    folder = tmp_path_factory.mktemp("allocate")
    (folder / "logs").mkdir()
    for length in (2, 3, 5):
        trace = traces(np.random.default_rng(length), 20, (0.9, 0.85, 0.6, 0.5, 0.4)[:length], mean_cycles=15)
        shape = {"serial_steps": 2, "serial_layers": 2, "parallel_heads": 5}
        facts = {"method": "gumiho", "drafter": "d", "drafter_shape": shape}
        replace(trace, provenance={**trace.provenance, **facts}).write(folder / "logs" / f"chain{length}.parquet")
    (folder / "logs" / "broken.parquet").write_text("x")
    fit(Trace.read(folder / "logs" / "chain5.parquet"), "hazard").write(folder / "model.json")
    run("roofline", "--shape", "vicuna-7b", "--method", "gumiho", "--accelerator", "A100", "-o", folder / "p.json")
    (folder / "grid.json").write_text(
        json.dumps({"models": ["model.json"], "structures": ["chain:1", "chain:5"], "profiles": ["p.json"]})
    )
    return folder


def test_allocate_prints_the_contract_s_keys(files: Path, run_json: Run) -> None:
    result = run_json("allocate", "--profile", files / "p.json", "--traces", files / "logs")
    keys = {"serial", "parallel", "serial_layers", "nodes", "tau", "speedup", "lo", "hi"}
    assert keys <= set(result["best"])
    assert all(keys <= set(row) for row in result["front"])
    assert len(result["rows"]) == 3
    assert [row["cycle_seconds"] for row in result["front"]] == sorted(row["cycle_seconds"] for row in result["front"])
    assert len(result["warnings"]) == 1 and "broken.parquet" in result["warnings"][0]
    assert result["regret"] >= 0
    assert result["convention"]


def test_allocate_takes_a_folder_of_profiles_one_a_drafter(files: Path, tmp_path: Path, run_json: Run) -> None:
    profile = CostProfile.read(files / "p.json")
    replace(profile, drafter="d").write(tmp_path / "d.json")
    replace(profile, drafter="another", baseline_seconds=1.0).write(tmp_path / "another.json")
    asked = ("allocate", "--traces", files / "logs", "--profile")
    own, one = run_json(*asked, tmp_path), run_json(*asked, files / "p.json")
    assert own["rows"] == one["rows"]
    assert len(own["assumptions"]) == len(one["assumptions"]) - 1  # that its times hold for d


def test_a_figure_is_written_on_request(files: Path, tmp_path: Path, run: Run, run_json: Run) -> None:
    asked = ("allocate", "--profile", files / "p.json", "--traces", files / "logs", "--figure")
    run_json(*asked, tmp_path / "front.svg")
    assert "<svg" in (tmp_path / "front.svg").read_text()
    with pytest.raises(InputError, match="--figure"):
        run(*asked, tmp_path / "front.txt")
    with pytest.raises(InputError, match="absent"):
        run(*asked, tmp_path / "absent" / "front.svg")


def test_compare_says_what_differs_and_how_many_prompts_it_takes(files: Path, run_json: Run) -> None:
    logs = files / "logs"
    result = run_json("compare", logs / "chain2.parquet", logs / "chain5.parquet")
    assert result["difference"] == pytest.approx(result["tau_b"] - result["tau_a"])
    assert result["paired"] and result["prompts_a"] == 20
    assert result["lo"] < result["difference"] < result["hi"]
    assert result["prompts_needed"] >= 2


def test_roofline_writes_a_profile_that_forecast_takes(files: Path, run_json: Run) -> None:
    profile = CostProfile.read(files / "p.json")
    assert set(profile.estimated) >= {"baseline_seconds", "verify_seconds"}
    result = run_json("forecast", files / "model.json", "--lengths", "1,3,5", "--profile", files / "p.json")
    assert result["best"] in {"chain:3", "chain:5"}
    assert result["break_even"] == "chain:5"


def test_cost_fits_traces_to_a_profile_and_scores_a_profile(files: Path, tmp_path: Path, run_json: Run) -> None:
    logs = [files / "logs" / f"chain{length}.parquet" for length in (2, 3, 5)]
    result = run_json("cost", *logs, "--baseline-ms", "1.9", "-o", tmp_path / "p.json")
    assert result["kind"] in {"line", "stair"}
    assert {error["kind"] for error in result["errors"]} == {"line", "stair"}
    made = CostProfile.read(tmp_path / "p.json")
    assert made.baseline_seconds == 0.0019
    assert made.verify_nodes == (3, 4, 6)
    scored = run_json("cost", files / "p.json")
    assert scored["errors"][0]["sizes"] == 7


def test_sweep_writes_every_forecast(files: Path, tmp_path: Path, run_json: Run) -> None:
    result = run_json("sweep", files / "grid.json", "-o", tmp_path / "out.parquet")
    assert (result["cells"], result["computed"], result["without_tau"]) == (2, 2, 0)
    assert result["best"]["structure"] in {"chain:1", "chain:5"}
    again = run_json("sweep", files / "grid.json", "-o", tmp_path / "out.parquet", "--resume")
    assert (again["computed"], again["reused"]) == (0, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("allocate", "--profile", "p.json", "--traces", "logs"),
        ("compare", "logs/chain2.parquet", "logs/chain5.parquet"),
        ("roofline", "--shape", "vicuna-7b", "--method", "eagle", "--accelerator", "h200", "-o", "q.json"),
        ("cost", "p.json"),
        ("cost", "logs/chain2.parquet", "logs/chain3.parquet", "logs/chain5.parquet"),
        ("sweep", "grid.json", "-o", "out.parquet"),
    ],
)
def test_tables_are_printed_for_people(
    files: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], run: Run
) -> None:
    monkeypatch.chdir(files)
    text = run(*arguments)
    assert "nan" not in text
    assert "{" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("allocate", "--profile", "absent.json", "--traces", "logs"), "absent.json"),
        (("allocate", "--profile", "p.json", "--traces", "absent"), "absent"),
        (("compare", "logs/chain2.parquet", "absent.parquet"), "absent.parquet"),
        (("roofline", "--shape", "x", "--method", "eagle", "--accelerator", "H100", "-o", "q.json"), "shape"),
        (("cost", "logs/chain2.parquet", "-o", "q.json"), "--baseline-ms"),
        (("cost", "p.json", "p.json"), "one profile alone"),
        (("cost", "logs/chain2.parquet"), "numbers of verified tokens"),
        (("sweep", "absent.json", "-o", "out2.parquet"), "absent.json"),
    ],
)
def test_bad_input_raises_one_line_that_names_the_place(
    files: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str, run: Run
) -> None:
    monkeypatch.chdir(files)
    with pytest.raises(InputError) as caught:
        run(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_help_text_has_an_example(run: Run) -> None:
    for command in ("allocate", "compare", "roofline", "cost", "sweep"):
        assert f"Example: gumiho {command}" in " ".join(run(command, "--help").split())
