"""Sweeps: every cell equals its own forecast, however it was computed, and nothing done is done twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gumiho_simulator.allocating.sweeps.file import NUMBERS, read_rows, write_rows
from gumiho_simulator.allocating.sweeps.run import Grid, run_task, sweep
from gumiho_simulator.costs.speed import with_speed
from gumiho_simulator.forecasting.fitting import FitResult, fit
from gumiho_simulator.forecasting.tau import forecast
from gumiho_theory import CostProfile, InputError, Trace

PROFILE = CostProfile(
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
)


@pytest.fixture(scope="module")
def folder(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sweep")
    for name in ("hazard", "geometric"):
        fit(trace, name).write(place / f"{name}.json")
    PROFILE.write(place / "p.json")
    grid = {
        "models": ["hazard.json", "geometric.json"],
        "structures": ["chain:1", "chain:3", "chain:9"],
        "profiles": ["p.json"],
    }
    (place / "grid.json").write_text(json.dumps(grid))
    return place


def test_every_cell_is_the_forecast_of_its_own(folder: Path, tmp_path: Path) -> None:
    grid = Grid.read(folder / "grid.json")
    seen: list[tuple[int, int]] = []
    done = sweep(grid, tmp_path / "out.parquet", progress=lambda n, cells: seen.append((n, cells)))
    assert (done.computed, done.reused, grid.cells) == (6, 0, 6)
    assert seen[0] == (0, 6) and seen[-1] == (6, 6)
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert table["structure"].tolist() == list(grid.structures) * 2
    for model in grid.models:
        expected = with_speed(forecast(FitResult.read(model), grid.structures), PROFILE).rows
        rows = table[table["model"] == model]
        for name in NUMBERS:
            wanted = np.array([row[name] for row in expected], dtype=np.float64)
            np.testing.assert_array_equal(rows[name].to_numpy(np.float64), wanted)
        assert rows["supported"].tolist() == [row["supported"] for row in expected]
        assert rows["note"].tolist() == [row["note"] for row in expected]


def test_processes_give_what_one_process_gives(folder: Path, tmp_path: Path) -> None:
    grid = Grid.read(folder / "grid.json")
    one = sweep(grid, tmp_path / "one.parquet")
    two = sweep(grid, tmp_path / "two.parquet", jobs=2)
    assert (tmp_path / "two.parquet").exists()
    assert list(two.rows) == list(one.rows)


# Libraries of the cluster close their sockets late and warn of their own loops.
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_on_this_machine_gives_what_one_process_gives(folder: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    grid = Grid.read(folder / "grid.json")
    settings = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    with distributed.LocalCluster(**settings, dashboard_address=None) as cluster:
        assert cluster.scheduler_address.startswith("tcp://127.0.0.1")
        done = sweep(grid, tmp_path / "cluster.parquet", scheduler=cluster.scheduler_address)
    assert list(done.rows) == list(sweep(grid, tmp_path / "one.parquet").rows)


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_none_is_refused_and_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError) as caught:
        sweep(Grid.read(folder / "grid.json"), tmp_path / "out.parquet", scheduler="nothing://x")
    assert caught.value.place == "--scheduler"
    assert not (tmp_path / "out.parquet").exists()


def test_work_cut_short_is_kept_and_gone_on_with(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = Grid.read(folder / "grid.json")
    out = tmp_path / "out.parquet"
    whole = sweep(grid, tmp_path / "whole.parquet")
    calls = 0

    def interrupted(task: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return run_task(task)

    monkeypatch.setattr("gumiho_simulator.allocating.sweeps.run.run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(grid, out)
    assert len(read_rows(out, 10)) == 3
    monkeypatch.undo()
    resumed = sweep(grid, out, resume=True)
    assert (resumed.computed, resumed.reused) == (3, 3)
    assert list(resumed.rows) == list(whole.rows)
    assert list(read_rows(out, 10)) == list(whole.rows)
    again = sweep(grid, out, resume=True)
    assert (again.computed, again.reused) == (0, 6)
    fresh = sweep(grid, out)
    assert (fresh.computed, fresh.reused) == (6, 0)


def test_a_model_that_changed_is_forecast_again_and_old_rows_stay(folder: Path, trace: Trace, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    fit(trace, "hazard").write(model)
    grid = Grid((str(model),), ("chain:1", "chain:2"))
    sweep(grid, tmp_path / "out.parquet")
    fit(trace.select(trace.prompts[:20]), "hazard").write(model)
    done = sweep(grid, tmp_path / "out.parquet", resume=True)
    assert (done.computed, done.reused, len(done.rows)) == (2, 0, 4)
    wider = Grid(grid.models, (*grid.structures, "chain:3"))
    more = sweep(wider, tmp_path / "out.parquet", resume=True)
    assert (more.computed, more.reused, len(more.rows)) == (1, 2, 5)


def test_a_profile_added_to_the_grid_is_all_that_is_computed(folder: Path, tmp_path: Path) -> None:
    models, structures = (str(folder / "hazard.json"),), ("chain:1", "chain:2")
    sweep(Grid(models, structures, (str(folder / "p.json"),)), tmp_path / "out.parquet")
    faster = tmp_path / "q.json"
    CostProfile.from_json({**PROFILE.to_json(), "draft_serial_seconds": 1e-4}).write(faster)
    grid = Grid(models, structures, (str(folder / "p.json"), str(faster)))
    done = sweep(grid, tmp_path / "out.parquet", resume=True)
    assert (done.computed, done.reused) == (2, 2)
    assert list(done.rows) == list(sweep(grid, tmp_path / "new.parquet").rows)


def test_a_structure_that_a_model_cannot_take_has_a_reason_and_spoils_no_other(folder: Path, tmp_path: Path) -> None:
    grid = Grid((str(folder / "hazard.json"),), ("chain:2", "tree:total=9"))
    rows = sweep(grid, tmp_path / "out.parquet").rows
    assert rows[0]["tau"] is not None
    assert rows[1]["tau"] is None
    assert rows[1]["note"]


@pytest.mark.parametrize(
    ("grid", "wanted"),
    [
        ({"structures": ["chain:1"]}, "models"),
        ({"models": [], "structures": ["chain:1"]}, "models"),
        ({"models": ["hazard.json"], "structures": "chain:1"}, "structures"),
        ({"models": ["hazard.json"], "structures": ["chain:x"]}, "chain"),
        ({"models": ["hazard.json"], "structures": ["chain:1", "chain:1"]}, "twice"),
        ({"models": ["hazard.json"], "structures": ["chain:1"], "profile": ["p.json"]}, "'profile'"),
        ({"models": ["hazard.json"], "structures": ["chain:1"], "profiles": [1]}, "profiles"),
        ({"models": ["absent.json"], "structures": ["chain:1"]}, "absent.json"),
        ({"models": ["p.json"], "structures": ["chain:1"]}, "p.json"),
        ({"models": ["hazard.json"], "structures": ["chain:1"], "profiles": ["hazard.json"]}, "hazard.json"),
    ],
)
def test_a_bad_grid_is_refused_by_name_before_anything_is_written(
    folder: Path, tmp_path: Path, grid: dict[str, Any], wanted: str
) -> None:
    path = folder / f"bad-{os.getpid()}.json"
    path.write_text(json.dumps(grid))
    with pytest.raises(InputError) as caught:
        sweep(Grid.read(path), tmp_path / "out.parquet")
    assert wanted in str(caught.value)
    assert not (tmp_path / "out.parquet").exists()


def test_a_grid_too_large_and_the_same_model_twice_are_refused(folder: Path, tmp_path: Path) -> None:
    many = tuple(f"chain:{length}" for length in range(1, 500))
    with pytest.raises(InputError, match="cells"):
        Grid(tuple(f"{i}.json" for i in range(5000)), many)
    (tmp_path / "copy.json").write_bytes((folder / "hazard.json").read_bytes())
    with pytest.raises(InputError, match="same content"):
        sweep(Grid((str(folder / "hazard.json"), str(tmp_path / "copy.json")), ("chain:1",)), tmp_path / "o.parquet")
    with pytest.raises(InputError, match="jobs"):
        sweep(Grid.read(folder / "grid.json"), tmp_path / "o.parquet", jobs=0)


def test_a_file_that_is_no_sweep_is_not_resumed(trace: Trace, folder: Path, tmp_path: Path) -> None:
    trace.write(tmp_path / "trace.parquet")
    (tmp_path / "text.parquet").write_text("x")
    write_rows(tmp_path / "rows.parquet", [{}] * 3)
    grid = Grid.read(folder / "grid.json")
    for name in ("trace.parquet", "text.parquet"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match=name):
            sweep(grid, tmp_path / name, resume=True)
        assert (tmp_path / name).read_bytes() == before
    with pytest.raises(InputError, match="3 rows"):
        read_rows(tmp_path / "rows.parquet", 2)
