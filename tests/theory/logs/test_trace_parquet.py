from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_theory import InputError, Trace
from gumiho_theory.logs import parquet as _parquet
from gumiho_theory.logs import schema as _schema
from gumiho_theory.logs.columns import TRACE_SCHEMA

MakeRow = Callable[..., dict[str, Any]]
PROVENANCE = {
    "structure": "chain:3",
    "seed": 3,
    "lossless": None,
    "versions": {"numpy": "2"},
    "list": [1, "é"],
}


@pytest.fixture
def trace(row: MakeRow) -> Trace:
    return Trace.from_rows(
        [
            row(task="code", rank=[1, 2, None], q_draft=[0.5, 0.25, None], draft_seconds=0.5),
            row(cycle=1, position=13, accepted=1, committed=1, censored_at=1, stop_reason="eos"),
            row(prompt_id="b", drafted=0, nodes=1, accepted=0, committed=1, rank=[], stop_reason="length"),
        ],
        PROVENANCE,
    )


def equal(a: Trace, b: Trace) -> bool:
    same = all(
        np.array_equal(getattr(a, c.name), getattr(b, c.name), equal_nan=c.kind.startswith("float"))
        for c in TRACE_SCHEMA.columns
    )
    return same and a.provenance == b.provenance and a.missing == b.missing


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def with_column(name: str, array: pa.Array) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.column_names.index(name)
        return table.set_column(index, pa.field(name, array.type), array).replace_schema_metadata(table.schema.metadata)

    return change


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_file_leads_back_to_the_same_trace(random_rows: Callable[..., Any], tmp_path_factory: Any, seed: int) -> None:
    path = tmp_path_factory.mktemp("trace") / "t.parquet"
    trace = Trace.from_rows(random_rows(seed), PROVENANCE)
    trace.write(path)
    assert equal(Trace.read(path), trace)


def test_null_is_null_in_the_file_never_a_number(tmp_path: Path, trace: Trace) -> None:
    trace.write(tmp_path / "t.parquet")
    rows = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert rows[0]["rank"] == [1, 2, None]
    assert rows[0]["q_draft"] == [0.5, 0.25, None]
    assert [r["censored_at"] for r in rows] == [None, 1, None]
    assert [r["draft_seconds"] for r in rows] == [0.5, None, None]
    assert [r["task"] for r in rows] == ["code", None, None]
    assert [len(r["rank"]) for r in rows] == [3, 3, 0]


def test_file_carries_provenance_units_and_descriptions(tmp_path: Path, trace: Trace) -> None:
    trace.write(tmp_path / "t.parquet")
    schema = pq.read_schema(tmp_path / "t.parquet")
    assert json.loads(schema.metadata[b"gumiho"]) == {"schema": "gumiho.trace/1", **PROVENANCE}
    assert schema.field("draft_seconds").metadata[b"unit"] == b"s"
    assert all(schema.field(name).metadata[b"description"] for name in schema.names)


def test_columns_that_the_source_lacked_stay_absent_and_are_listed(tmp_path: Path, trace: Trace) -> None:
    trace.write(tmp_path / "t.parquet")
    assert "p_target" not in pq.read_schema(tmp_path / "t.parquet").names
    assert Trace.read(tmp_path / "t.parquet").missing == (
        "verify_seconds",
        "other_seconds",
        "p_target",
        "expected_accepted",
    )


def test_optional_columns_may_be_missing_and_are_null(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    rewrite(path, lambda table: table.drop_columns(["censored_at", "task", "rank", "stop_reason"]))
    older = Trace.read(path)
    assert older.missing == (
        "task",
        "censored_at",
        "stop_reason",
        "verify_seconds",
        "other_seconds",
        "rank",
        "p_target",
        "expected_accepted",
    )
    assert older.censored_at.tolist() == [-1, -1, -1]
    assert (older.rank == 0).all()
    assert older.task.tolist() == [None] * 3


def test_unknown_columns_of_a_later_minor_version_are_ignored(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)

    def extend(table: pa.Table) -> pa.Table:
        later = json.dumps({**json.loads(table.schema.metadata[b"gumiho"]), "schema": "gumiho.trace/1.4"})
        return table.append_column("watts", pa.array([1.0, 2.0, 3.0])).replace_schema_metadata({b"gumiho": later})

    rewrite(path, extend)
    assert Trace.read(path).accepted.tolist() == trace.accepted.tolist()


@pytest.mark.parametrize("name", [c.name for c in TRACE_SCHEMA.columns if c.required])
def test_a_missing_required_column_is_named(tmp_path: Path, trace: Trace, name: str) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    rewrite(path, lambda table: table.drop_columns([name]))
    with pytest.raises(InputError, match=f"t.parquet: column {name}: found no such column"):
        Trace.read(path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("accepted", pa.array([2.0, 1.0, 0.0])),
        ("accepted", pa.array(["2", "1", "0"])),
        ("prompt_id", pa.array([1, 2, 3])),
        ("prompt_id", pa.array([b"a", b"a", b"b"])),
        ("draft_seconds", pa.array([1, 2, 3])),
        ("rank", pa.array([1, 2, 3])),
        ("rank", pa.array([[1.0, 2.0, None], [None] * 3, []])),
        ("rank", pa.array([[[1]], [[1]], []])),
        ("q_draft", pa.array([["x"], [], []])),
        ("stop_reason", pa.array([True, None, None])),
        ("accepted", pa.array([2, None, 0])),
        ("accepted", pa.array([2, 2**63, 0], type=pa.uint64())),
        ("accepted", pa.nulls(3)),
        ("censored_at", pa.array([None, -1, None], type=pa.int64())),
        ("rank", pa.array([[1, 0, None], [None] * 3, []])),
        ("rank", pa.array([[1, 2], [None] * 3, []])),
        ("rank", pa.array([[1, 2, None], [None] * 3, [1]])),
        ("q_draft", pa.array([[0.5, 2.0, None], [None] * 3, []])),
        ("cycle", pa.array([0, 2, 0])),
    ],
)
def test_a_column_of_wrong_type_or_content_is_named_with_the_file(
    tmp_path: Path, trace: Trace, name: str, array: pa.Array
) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    rewrite(path, with_column(name, array))
    with pytest.raises(InputError, match=rf"t.parquet: (row \d, )?column {name}"):
        Trace.read(path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("prompt_id", pa.array(["a", "a", "b"], type=pa.large_string())),
        ("prompt_id", pa.array(["a", "a", "b"]).dictionary_encode()),
        ("stop_reason", pa.array([None, "eos", "length"]).dictionary_encode()),
        ("accepted", pa.array([2, 1, 0], type=pa.int8())),
        ("draft_seconds", pa.array([0.5, None, None], type=pa.float32())),
        ("draft_seconds", pa.array([0.5, float("nan"), float("nan")])),
        ("rank", pa.array([[1, 2, None], None, None], type=pa.large_list(pa.int32()))),
        ("q_draft", pa.array([[0.5, 0.25, None], None, []], type=pa.list_(pa.float32()))),
    ],
)
def test_other_widths_of_the_same_type_read_alike(tmp_path: Path, trace: Trace, name: str, array: pa.Array) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    rewrite(path, with_column(name, array))
    assert equal(Trace.read(path), trace)


def test_lists_of_fixed_size_and_columns_of_nulls_read_too(tmp_path: Path, row: MakeRow) -> None:
    path = tmp_path / "t.parquet"
    Trace.from_rows([row(rank=[1, 2, None], task="x", q_draft=None)], {}).write(path)
    rewrite(path, with_column("rank", pa.array([[1, 2, None]], type=pa.list_(pa.int64(), 3))))
    rewrite(path, with_column("task", pa.nulls(1)))
    rewrite(path, with_column("q_draft", pa.array([[None, None, None]])))
    trace = Trace.read(path)
    assert trace.rank.tolist() == [[1, 2, 0]]
    assert trace.task.tolist() == [None]
    assert np.isnan(trace.q_draft).all()


@pytest.mark.parametrize("batch", [3, 65_536])
def test_files_of_many_row_groups_read_as_one(
    tmp_path: Path, row: MakeRow, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(_parquet, "_BATCH_ROWS", batch)
    rows = [row(prompt_id=f"p{i % 7}", cycle=i // 7, position=i, rank=[1, i + 1, None]) for i in range(35)]
    trace = Trace.from_rows(rows, PROVENANCE)
    path = tmp_path / "t.parquet"
    trace.write(path)
    pq.write_table(pq.read_table(path), path, row_group_size=4)
    assert equal(Trace.read(path), trace)


def test_a_bad_value_in_a_later_batch_is_named_by_its_row_in_the_file(
    tmp_path: Path, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    monkeypatch.setattr(_parquet, "_BATCH_ROWS", 2)
    for name, values in (
        ("rank", [[1, 2, None]] * 7 + [[1, 0, None], [1, 2, None]]),
        ("rank", [[1, 2, None]] * 7 + [[1, 2], [1, 2, None]]),
        ("turn", [0] * 7 + [None, 0]),
    ):
        Trace.from_rows([row(prompt_id=f"p{i}", rank=[1, 2, None]) for i in range(9)]).write(path)
        rewrite(path, with_column(name, pa.array(values)))
        with pytest.raises(InputError, match=f"row 7, column {name}"):
            Trace.read(path)


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b'{"prompt": "hello"}\n' * 10], ids=repr
)
def test_a_file_that_is_not_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"t.parquet: .*wanted a readable Parquet file"):
        Trace.read(path)


def test_a_file_cut_short_at_any_place_is_refused(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"t\.parquet"):
            Trace.read(path)


def test_a_damaged_file_is_refused_or_reads_but_never_crashes(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.integers(4, len(whole) - 8, size=150):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            Trace.read(path)
        except InputError as error:
            refused += 1
            assert "t.parquet" in str(error)
    assert refused > 20


@pytest.mark.parametrize("metadata", [None, {"schema": None}, {"schema": "gumiho.trace/2"}, {"schema": "other/1"}])
def test_another_schema_or_a_newer_one_is_refused(
    tmp_path: Path, trace: Trace, metadata: dict[str, str | None] | None
) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    new = None if metadata is None else {b"gumiho": json.dumps(metadata)}
    rewrite(path, lambda table: table.replace_schema_metadata(new))
    with pytest.raises(InputError, match=r"t.parquet: .*wanted .*gumiho.trace/1"):
        Trace.read(path)


def test_a_newer_version_is_said_to_be_newer(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    rewrite(path, lambda table: table.replace_schema_metadata({b"gumiho": '{"schema": "gumiho.trace/2"}'}))
    with pytest.raises(InputError, match="newer version"):
        Trace.read(path)


@pytest.mark.parametrize(
    ("module", "limit"), [(_parquet, "MAX_ROWS"), (_schema, "MAX_CELLS"), (_parquet, "_MAX_METADATA")]
)
def test_absurdly_large_files_are_refused(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch, module: ModuleType, limit: str
) -> None:
    trace.write(tmp_path / "t.parquet")
    monkeypatch.setattr(module, limit, 2)
    with pytest.raises(InputError, match="t.parquet: .*at most 2"):
        Trace.read(tmp_path / "t.parquet")


def test_lists_longer_than_the_bound_are_refused(tmp_path: Path, trace: Trace) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    rewrite(path, with_column("drafted", pa.array([513, 3, 0])))
    with pytest.raises(InputError, match="row 0, column drafted: found 513, wanted a depth of at most 512"):
        Trace.read(path)


@pytest.mark.parametrize("name", ["missing/t.parquet", ".", "file/t.parquet", "null\0"])
def test_a_path_that_cannot_be_used_is_an_input_error(tmp_path: Path, trace: Trace, name: str) -> None:
    (tmp_path / "file").write_text("")
    for action in (Trace.read, trace.write):
        with pytest.raises(InputError):
            action(f"{tmp_path}/{name}")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_keeps_the_old_trace(tmp_path: Path, trace: Trace, row: MakeRow) -> None:
    path = tmp_path / "t.parquet"
    trace.write(path)
    for bad in (float("nan"), object()):
        with pytest.raises(InputError, match="provenance"):
            Trace.from_rows([row()], {"x": bad}).write(path)
    assert equal(Trace.read(path), trace)
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]
