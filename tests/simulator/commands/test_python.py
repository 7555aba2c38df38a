"""What a command prints as JSON, one public call of Python returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gumiho_simulator import allocating, costs, forecasting, predict
from gumiho_theory import CostProfile, InputError, Trace
from gumiho_theory.json_output import plain

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(traces: Callable[..., Trace], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("python")
    shape = {"serial_steps": 2, "serial_layers": 2, "parallel_heads": 5}
    facts = {"method": "gumiho", "drafter": "d", "drafter_shape": shape}
    for length in (2, 3, 5):
        trace = traces(np.random.default_rng(length), 10, (0.9, 0.85, 0.6, 0.5, 0.4)[:length], mean_cycles=12)
        replace(trace, provenance={**trace.provenance, **facts}).write(place / f"{length}.parquet")
    (place / "broken.parquet").write_text("x")
    forecasting.fit(Trace.read(place / "5.parquet"), "hazard").write(place / "model.json")
    costs.estimate_profile("vicuna-7b", "gumiho", "A100").profile.write(place / "p.json")
    return place


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_predict(run_json: Run) -> None:
    times = ("--draft-ms", "0.5,0.25", "--verify-ms", "3", "--baseline-ms", "2")
    found = predict([0.8, 0.7, 0.5], draft_ms=[0.5, 0.25], verify_ms=3, baseline_ms=2)
    assert run_json("predict", "--rates", "0.8,0.7,1/2", *times) == found.to_json()


def test_allocate(run_json: Run) -> None:
    found = allocating.allocate_folder("p.json", ".", seed=3)
    assert "broken.parquet" in found.warnings[0]
    assert run_json("allocate", "--profile", "p.json", "--traces", ".", "--seed", 3) == plain(found.to_json())


def test_roofline(run_json: Run) -> None:
    found = costs.estimate_profile("llama3-8b", "hydra", "H200", batch=4, heads=3)
    asked = ("roofline", "--shape", "llama3-8b", "--method", "hydra", "--accelerator", "H200", "-o", "q.json")
    assert run_json(*asked, "--batch", 4, "--heads", 3) == plain({**found.to_json(), "output": "q.json"})


def test_cost(run_json: Run) -> None:
    logs = [f"{length}.parquet" for length in (2, 3, 5)]
    fitted = costs.fit_costs(logs)
    assert run_json("cost", *logs) == plain(fitted.to_json())
    assert run_json("cost", "p.json") == plain(costs.fit_costs(["p.json"]).to_json())
    assert isinstance(fitted, costs.CycleCost)
    assert fitted.to_profile(0.01).drafter == "d"
    assert fitted.to_profile(0.01, drafter="e").drafter == "e"


def test_forecast(run_json: Run) -> None:
    fitted, profile = forecasting.FitResult.read("model.json"), CostProfile.read("p.json")
    found = costs.forecast_speeds(fitted, ["chain:3", "chain:5"], profile)
    assert run_json("forecast", "model.json", "--lengths", "3,5", "--profile", "p.json") == plain(found.to_json())
    points = costs.forecast_speeds({1: 1.84, 2: 2.5}, ["chain:4"])
    asked = ("forecast", "--tau-by-length", "1:1.84,2:2.50", "--lengths", "4")
    assert run_json(*asked) == plain(points.to_json())
    assert points.best is None and points.verdicts() == []
    with pytest.raises(InputError, match="points are for chains"):
        costs.forecast_speeds({1: 1.84}, ["chain:1", "tree:total=9"])


def test_sweep(run_json: Run) -> None:
    Path("grid.json").write_text(json.dumps({"models": ["model.json"], "structures": ["chain:1", "chain:5"]}))
    done = allocating.sweep(allocating.Grid.read("grid.json"), "out.parquet")
    assert done.best is None
    assert run_json("sweep", "grid.json", "-o", "out.parquet") == done.to_json()
