"""``gumiho traces show``: traces and counts are summed up alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumiho_theory import Trace

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def files(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("show")
    trace.write(folder / "trace.parquet")
    (folder / "counts.json").write_text(json.dumps(trace.counts_by_prompt().to_json()))
    return folder


def test_traces_show_sums_up_traces_and_counts_alike(files: Path, trace: Trace, run_json: Run) -> None:
    shown = run_json("traces", "show", files / "trace.parquet")
    counted = run_json("traces", "show", files / "counts.json")
    assert shown["kind"] == "cycles"
    assert counted["kind"] == "counts"
    assert (shown["cycles"], shown["prompts"]) == (trace.n_cycles, 64)
    assert shown["tau"] == trace.tau()
    assert shown["tau_macro"] == pytest.approx(trace.tau_macro())
    assert shown["tau_ci"][0] < shown["tau"] < shown["tau_ci"][1]
    assert shown["censored_cycles"] == int((~trace.complete).sum())
    assert shown["mean_committed"] == pytest.approx(trace.committed.mean())
    assert shown["draft_ms"] == pytest.approx(1000 * trace.draft_seconds.mean())
    for low_high, rate in zip(shown["conditional_ci"], shown["conditional"], strict=True):
        assert low_high[0] < rate < low_high[1]
    own = {"kind", "mean_committed", "draft_ms", "verify_ms"}
    assert {k: v for k, v in shown.items() if k not in own} == {k: v for k, v in counted.items() if k not in own}
    assert counted["draft_ms"] is None
    assert counted["mean_committed"] is None


def test_an_empty_trace_is_shown_with_nulls(tmp_path: Path, run_json: Run) -> None:
    Trace.from_rows([]).write(tmp_path / "empty.parquet")
    shown = run_json("traces", "show", tmp_path / "empty.parquet")
    assert shown["cycles"] == 0
    assert shown["tau"] is None
    assert shown["conditional"] is None
