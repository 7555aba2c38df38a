"""``gumiho traces import``, and the commands that read any log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumiho_simulator.importers import read
from gumiho_theory import AcceptanceCounts, InputError, Trace

Run = Callable[..., Any]

SGLANG = [
    {"meta_info": {"id": name, "spec_verify_ct": 10, "spec_correct_drafts_histogram": buckets}}
    for name, buckets in (("a", [1, 3, 3, 3]), ("b", [4, 4, 2]), ("c", [2, 2, 3, 3]))
]
STEPS = {"per_step_accepted": [2, 0, 3], "per_step_drafted": [3, 3, 3]}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def test_counts_are_written_with_the_contract_s_keys(tmp_path: Path, invoke: Run) -> None:
    log, out = write(tmp_path / "log", *SGLANG), tmp_path / "counts.json"
    result = json.loads(invoke("traces", "import", log, "-o", out, "--json").stdout)
    keys = {"format", "kind", "cycles", "tau", "tau_convention", "survival", "warnings", "output"}
    assert keys <= result.keys()
    assert (result["format"], result["kind"], result["cycles"]) == ("sglang", "counts", 30)
    assert result["tau"] == pytest.approx(1 + 43 / 30) and result["tau_convention"] == "bonus included, micro"
    assert result["survival"] == pytest.approx([23 / 30, 14 / 30, 6 / 30])
    assert result["warnings"] == [] and result["output"] == str(out)
    assert AcceptanceCounts.from_json(json.loads(out.read_text())).groups == ("a", "b", "c")


def test_cycles_are_written_as_a_trace_that_every_command_reads(tmp_path: Path, invoke: Run) -> None:
    records = [{"id": f"r{i}", "metrics": {"speculative_decoding": STEPS}} for i in range(4)]
    log, out = write(tmp_path / "log", *records), tmp_path / "trace.parquet"
    result = json.loads(invoke("traces", "import", log, "-o", out, "--json").stdout)
    assert result["kind"] == "cycles" and result["survival"] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    again = Trace.read(out)
    assert again.n_cycles == 12 and again.provenance["imported_from"] == "vllm-request"
    assert again.counts_by_prompt().to_json() == read(log).log.counts_by_prompt().to_json()  # type: ignore[union-attr]


def test_show_and_fit_read_a_log_as_it_is(tmp_path: Path, invoke: Run) -> None:
    log = write(tmp_path / "log", *SGLANG, "{")
    shown = invoke("traces", "show", log, "--json")
    assert json.loads(shown.stdout)["tau"] == pytest.approx(1 + 43 / 30) and "1 unusable: line 4" in shown.stderr
    fitted = json.loads(invoke("fit", log, "--model", "hazard", "-o", tmp_path / "model.json", "--json").stdout)
    assert fitted["n_cycles"] == 30


def test_a_log_without_positions_has_no_survival_and_still_an_interval(tmp_path: Path, invoke: Run) -> None:
    answers = [
        {"question_id": i, "choices": [{"turns": ["x"], "idxs": [2 + i], "new_tokens": [9 + i]}]} for i in range(5)
    ]
    log = write(tmp_path / "log", *answers)
    result = json.loads(invoke("traces", "import", log, "-o", tmp_path / "out.json", "--json").stdout)
    assert result["survival"] is None
    shown = json.loads(invoke("traces", "show", tmp_path / "out.json", "--json").stdout)
    assert shown["tau_ci"][0] < shown["tau"] < shown["tau_ci"][1] and shown["prompts"] == 5


def test_a_log_without_a_draft_is_shown_as_no_data(tmp_path: Path, invoke: Run) -> None:
    log = write(tmp_path / "log", 'vllm:spec_decode_num_drafts_total{engine="0"} 0.0')
    result = json.loads(invoke("traces", "import", log, "-o", tmp_path / "out.json", "--json").stdout)
    assert result["cycles"] == 0 and result["tau"] is None
    assert json.loads(invoke("traces", "show", tmp_path / "out.json", "--json").stdout)["tau"] is None
    empty = write(tmp_path / "empty", "SpecDecoding metrics: Accepted: 0 tokens, Drafted: 0 tokens")
    assert json.loads(invoke("traces", "show", empty, "--json").stdout)["tau"] is None


def test_tables_name_the_warnings_and_a_misleading_suffix(tmp_path: Path, invoke: Run) -> None:
    log = write(tmp_path / "log", *SGLANG, "{")
    shown = " ".join(invoke("traces", "import", log, "-o", tmp_path / "out.parquet").stdout.split())
    assert "warning: 1 unusable" in shown and "file of counts (JSON)" in shown and "2.433" in shown


def test_a_log_is_never_written_over_and_nothing_is_written_of_what_cannot_be_read(tmp_path: Path, invoke: Run) -> None:
    log = write(tmp_path / "log", *SGLANG)
    with pytest.raises(InputError, match="not one of the inputs"):
        invoke("traces", "import", log, "-o", log)
    write(tmp_path / "other", "nothing")
    with pytest.raises(InputError, match="no known format"):
        invoke("traces", "import", tmp_path / "other", "-o", tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_the_help_has_an_example(invoke: Run) -> None:
    assert "Example: gumiho traces import" in " ".join(invoke("traces", "import", "--help").stdout.split())
