from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gumiho_theory import EveryPositionLog, InputError, Trace
from gumiho_theory.logs.columns import EVERY_POSITION_SCHEMA

PROVENANCE = {"top_k": 2, "drafter": "tiny"}


def log_row(**changes: Any) -> dict[str, Any]:
    row = {
        "prompt_id": "a",
        "task": "code",
        "turn": 0,
        "position": 5,
        "drafted": 2,
        "true_token": [0, 7],
        "rank": [1, None],
        "q_draft": [0.5, 0.01],
        "p_target": [0.75, 0.5],
        "top_ids": [[0, 4], [9, 8]],
        "top_q": [[0.5, 0.25], [0.5, 0.25]],
    }
    return {**row, **changes}


@pytest.fixture
def log() -> EveryPositionLog:
    rows = [
        log_row(),
        log_row(
            position=6,
            true_token=[7, None],
            q_draft=[0.5, None],
            top_ids=[[1, 2], None],
            top_q=[[0.5, 0.25], None],
        ),
        log_row(prompt_id="b", drafted=0, true_token=[], rank=[], q_draft=[], p_target=[], top_ids=[], top_q=[]),
        log_row(prompt_id="b", position=6, top_ids=None, top_q=None),
    ]
    return EveryPositionLog.from_rows(rows, PROVENANCE)


def test_rows_become_padded_arrays(log: EveryPositionLog) -> None:
    assert (log.n_rows, log.depth, log.top_k, log.prompts) == (4, 2, 2, ("a", "b"))
    assert log.true_token.tolist() == [[0, 7], [7, -1], [-1, -1], [0, 7]]
    assert log.rank.tolist() == [[1, 0], [1, 0], [0, 0], [1, 0]]
    assert log.top_ids[:2].tolist() == [[[0, 4], [9, 8]], [[1, 2], [-1, -1]]]
    assert np.isnan(log.top_q[1, 1]).all()


def test_file_leads_back_to_the_same_log(tmp_path: Path, log: EveryPositionLog) -> None:
    path = tmp_path / "log.parquet"
    log.write(path)
    again = EveryPositionLog.read(path)
    for column in EVERY_POSITION_SCHEMA.columns:
        a, b = getattr(log, column.name), getattr(again, column.name)
        assert np.array_equal(a, b, equal_nan=column.kind.startswith("float")), column.name
    assert again.provenance == log.provenance == {"schema": "gumiho.every_position/1", **PROVENANCE}
    pq.write_table(pq.read_table(path), path, row_group_size=1)
    assert np.array_equal(EveryPositionLog.read(path).top_ids, log.top_ids)


def test_candidates_that_were_not_logged_read_as_null(tmp_path: Path, log: EveryPositionLog) -> None:
    path = tmp_path / "log.parquet"
    log.write(path)
    pq.write_table(pq.read_table(path).drop_columns(["top_ids", "top_q"]), path)
    again = EveryPositionLog.read(path)
    assert again.missing == ("stop_reason", "top_ids", "top_q", "accepted", "censored")
    assert again.top_ids.shape == (4, 2, 2) and (again.top_ids == -1).all()


def test_an_empty_log_round_trips(tmp_path: Path) -> None:
    EveryPositionLog.from_rows([], PROVENANCE).write(tmp_path / "log.parquet")
    assert EveryPositionLog.read(tmp_path / "log.parquet").top_ids.shape == (0, 0, 2)


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"top_ids": [[0, 4, 5], [9, 8]]}, "top_ids"),
        ({"top_ids": [[0, -1], [9, 8]]}, "top_ids"),
        ({"top_ids": [[0, 4]]}, "top_ids"),
        ({"top_q": [[0.5, 1.5], [0.5, 0.25]]}, "top_q"),
        ({"rank": [0, None]}, "rank"),
        ({"true_token": [-1, 3]}, "true_token"),
        ({"true_token": [-5, 3]}, "true_token"),
        ({"q_draft": [0.5, -0.5]}, "q_draft"),
        ({"turn": -1}, "turn"),
        ({"position": -1}, "position"),
        ({"drafted": 600}, "drafted"),
    ],
)
def test_a_bad_value_is_named_by_row_and_column(changes: dict[str, Any], column: str) -> None:
    with pytest.raises(InputError, match=rf"^row 1, column {column}\b"):
        EveryPositionLog.from_rows([log_row(), log_row(prompt_id="b", **changes)], PROVENANCE)


def test_a_reason_stands_on_the_last_row_of_an_output_only() -> None:
    rows = [log_row(), log_row(position=6, stop_reason="eos"), log_row(prompt_id="b", stop_reason="length")]
    log = EveryPositionLog.from_rows(rows, PROVENANCE)
    assert log.stop_reason.tolist() == [None, "eos", "length"]
    with pytest.raises(InputError, match=r"^row 0, column stop_reason: found length, wanted null before the last"):
        EveryPositionLog.from_rows([log_row(stop_reason="length"), *rows[1:]], PROVENANCE)
    with pytest.raises(InputError, match=r"^row 1, column stop_reason: found bored, wanted null or one of eos"):
        EveryPositionLog.from_rows([rows[0], log_row(position=6, stop_reason="bored")], PROVENANCE)


def test_each_position_is_logged_once(log: EveryPositionLog) -> None:
    with pytest.raises(InputError, match="row 1, column position"):
        EveryPositionLog.from_rows([log_row(), log_row()], PROVENANCE)


@pytest.mark.parametrize("provenance", [{}, {"top_k": "2"}, {"top_k": True}, {"top_k": -1}, {"top_k": 10**9}])
def test_top_k_must_be_stated(provenance: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="top_k"):
        EveryPositionLog.from_rows([log_row()], provenance)


def test_values_beyond_the_logged_depth_are_refused(log: EveryPositionLog) -> None:
    token = log.true_token.copy()
    token[2, 0] = 3
    with pytest.raises(InputError, match="row 2, column true_token, depth 1"):
        replace(log, true_token=token)


@pytest.mark.parametrize(
    "top_ids", [[[[0, 4, 1], [9, 8, 1]]], [[[0], [9, 8]]], [[[0, 4]]], [[[0, 4], [9, -1]]]], ids=repr
)
def test_candidate_lists_of_the_wrong_size_in_a_file_are_named(tmp_path: Path, top_ids: list[Any]) -> None:
    path = tmp_path / "log.parquet"
    EveryPositionLog.from_rows([log_row()], PROVENANCE).write(path)
    table = pq.read_table(path)
    index = table.column_names.index("top_ids")
    changed = table.set_column(index, "top_ids", pa.array(top_ids))
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(InputError, match=r"log.parquet: row 0, column top_ids"):
        EveryPositionLog.read(path)


def test_a_trace_and_a_log_do_not_pass_for_one_another(
    tmp_path: Path, log: EveryPositionLog, row: Callable[..., dict[str, Any]]
) -> None:
    log.write(tmp_path / "log.parquet")
    Trace.from_rows([row()]).write(tmp_path / "trace.parquet")
    with pytest.raises(InputError, match="schema"):
        Trace.read(tmp_path / "log.parquet")
    with pytest.raises(InputError, match="schema"):
        EveryPositionLog.read(tmp_path / "trace.parquet")
