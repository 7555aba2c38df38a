"""Accepted lengths of structures in the every-position log, and logs that were written before there were any."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_theory import ChainStructure, DynamicTree, EveryPositionLog, InputError, StaticTree, Structure
from gumiho_theory.logs import schema as _schema
from gumiho_theory.logs.columns import EVERY_POSITION_SCHEMA

STRUCTURES: list[Structure] = [ChainStructure(3), DynamicTree(pruning=5), StaticTree(((1,), (2,), (1, 1)))]
PROVENANCE = {"top_k": 0, "structures": [str(structure) for structure in STRUCTURES]}


def log_row(**changes: Any) -> dict[str, Any]:
    row = {
        "prompt_id": "a",
        "turn": 0,
        "position": 5,
        "drafted": 1,
        "accepted": [3, 0, 1],
        "censored": [0, 0, 1],
    }
    return {**row, **changes}


@pytest.fixture
def log() -> EveryPositionLog:
    rows = [
        log_row(),
        log_row(position=6, accepted=[0, None, 2], censored=[1, None, 0]),
        log_row(position=7, accepted=None, censored=None),
        log_row(prompt_id="b", drafted=0, accepted=[2, 7, 2], censored=[0, 1, 0]),
    ]
    return EveryPositionLog.from_rows(rows, PROVENANCE)


def equal(a: EveryPositionLog, b: EveryPositionLog) -> bool:
    same = all(
        np.array_equal(getattr(a, c.name), getattr(b, c.name), equal_nan=c.kind.startswith("float"))
        for c in EVERY_POSITION_SCHEMA.columns
    )
    return same and a.provenance == b.provenance and a.missing == b.missing


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def with_column(name: str, array: pa.Array) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.column_names.index(name)
        return table.set_column(index, name, array).replace_schema_metadata(table.schema.metadata)

    return change


def test_rows_become_one_column_a_structure(log: EveryPositionLog) -> None:
    assert log.structures == ("chain:3", str(DynamicTree(pruning=5)), "static:[[1],[2],[1,1]]")
    assert log.accepted.tolist() == [[3, 0, 1], [0, -1, 2], [-1, -1, -1], [2, 7, 2]]
    assert log.censored.tolist() == [[0, 0, 1], [1, -1, 0], [-1, -1, -1], [0, 1, 0]]
    assert log.accepted.dtype == log.censored.dtype == np.int64


def test_lengths_are_found_by_structure_or_by_text(log: EveryPositionLog) -> None:
    for index, structure in enumerate(STRUCTURES):
        for asked in (structure, str(structure)):
            assert log.accepted_by(asked).tolist() == log.accepted[:, index].tolist()
            assert log.censored_by(asked).tolist() == log.censored[:, index].tolist()
    with pytest.raises(ValueError, match="read-only"):
        log.accepted_by("chain:3")[0] = 1


def test_a_static_tree_is_found_by_its_paths_never_by_the_name_of_its_file(log: EveryPositionLog) -> None:
    tree = STRUCTURES[2]
    assert isinstance(tree, StaticTree)
    assert log.accepted_by(replace(tree, source="other.json")).tolist() == log.accepted_by(tree).tolist()
    named = replace(log, provenance={**log.provenance, "structures": ["chain:3", "auto", "static:tree.json"]})
    assert named.accepted_by("static:tree.json").tolist() == log.accepted[:, 2].tolist()
    # The file may have been changed since the log was written.
    with pytest.raises(InputError, match="static"):
        named.accepted_by(replace(tree, source="tree.json"))


@pytest.mark.parametrize("asked", [ChainStructure(4), DynamicTree(), "chain:03", "", StaticTree(((1,),))], ids=str)
def test_a_structure_that_was_not_logged_is_refused_with_those_that_were(
    log: EveryPositionLog, asked: Structure | str
) -> None:
    for method in (log.accepted_by, log.censored_by):
        with pytest.raises(InputError, match="^structure: .*one of the log's: chain:3, tree:total"):
            method(asked)


@st.composite
def logs(draw: st.DrawFn) -> EveryPositionLog:
    """Logs of 0 to 3 structures and k of 0 to 2, with nulls, whole columns of them, and rows of no depth."""
    k, count = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    texts = [str(ChainStructure(length)) for length in range(count)]
    with_lengths = draw(st.booleans())
    rows = []
    for position in range(draw(st.integers(0, 6))):
        drafted = draw(st.integers(0, 3))
        row: dict[str, Any] = {"prompt_id": "p", "turn": 0, "position": position, "drafted": drafted}
        row["rank"] = [draw(st.none() | st.integers(1, 9)) for _ in range(drafted)]
        row["top_ids"] = [[draw(st.none() | st.integers(0, 9)) for _ in range(k)] for _ in range(drafted)]
        if with_lengths:
            accepted = draw(st.none() | st.lists(st.none() | st.integers(0, 600), min_size=count, max_size=count))
            given = accepted is not None
            row["accepted"] = accepted
            row["censored"] = [None if a is None else draw(st.integers(0, 1)) for a in accepted] if given else None
        rows.append(row)
    return EveryPositionLog.from_rows(rows, {"top_k": k, "structures": texts})


@settings(max_examples=60)
@given(logs(), st.integers(1, 4))
def test_file_leads_back_to_the_same_log(
    tmp_path_factory: pytest.TempPathFactory, log: EveryPositionLog, group: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    log.write(path)
    assert equal(EveryPositionLog.read(path), log)
    pq.write_table(pq.read_table(path), path, row_group_size=group)
    assert equal(EveryPositionLog.read(path), log)


def test_null_is_null_in_the_file_never_minus_1(tmp_path: Path, log: EveryPositionLog) -> None:
    log.write(tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet")
    assert table["accepted"].to_pylist() == [[3, 0, 1], [0, None, 2], [None, None, None], [2, 7, 2]]
    assert table["censored"].to_pylist() == [[0, 0, 1], [1, None, 0], [None, None, None], [0, 1, 0]]


def test_a_log_written_before_there_were_structures_still_reads(tmp_path: Path, log: EveryPositionLog) -> None:
    path = tmp_path / "log.parquet"
    log.write(path)

    def older(table: pa.Table) -> pa.Table:
        metadata = json.dumps({"schema": "gumiho.every_position/1", "top_k": 0})
        return table.drop_columns(["accepted", "censored"]).replace_schema_metadata({b"gumiho": metadata})

    rewrite(path, older)
    again = EveryPositionLog.read(path)
    assert {"accepted", "censored"} <= set(again.missing)
    assert again.structures == () and again.accepted.shape == again.censored.shape == (4, 0)
    assert again.position.tolist() == log.position.tolist()
    with pytest.raises(InputError, match="one of the log's: none"):
        again.accepted_by("chain:3")
    again.write(path)
    assert not {"accepted", "censored"} & set(pq.read_schema(path).names)
    assert equal(EveryPositionLog.read(path), again)


def test_lengths_that_a_file_lacks_are_null(tmp_path: Path, log: EveryPositionLog) -> None:
    path = tmp_path / "log.parquet"
    log.write(path)
    rewrite(path, lambda table: table.drop_columns(["accepted", "censored"]))
    assert EveryPositionLog.read(path).accepted_by("chain:3").tolist() == [-1] * 4


def test_columns_of_nulls_and_lists_of_fixed_size_read_too(tmp_path: Path, log: EveryPositionLog) -> None:
    path = tmp_path / "log.parquet"
    log.write(path)
    for name, values in (("accepted", log.accepted), ("censored", log.censored)):
        lists = [[None if v == -1 else v for v in row] for row in values.tolist()]
        rewrite(path, with_column(name, pa.array(lists, type=pa.list_(pa.int16(), 3))))
    assert equal(EveryPositionLog.read(path), log)
    for name in ("accepted", "censored"):
        rewrite(path, with_column(name, pa.nulls(4)))
    assert (EveryPositionLog.read(path).accepted == -1).all()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"accepted": [3, 0]}, "accepted"),
        ({"accepted": [3, 0, 1, 1]}, "accepted"),
        ({"accepted": []}, "accepted"),
        ({"accepted": 3}, "accepted"),
        ({"accepted": "301"}, "accepted"),
        ({"accepted": [3, 0, -1]}, "accepted"),
        ({"accepted": [3, -2, 1]}, "accepted, structure 2"),
        ({"accepted": [3, 0, 1.0]}, "accepted"),
        ({"accepted": [3, 0, 2**63]}, "accepted"),
        ({"censored": [0, 0, 2]}, "censored, structure 3"),
        ({"censored": [0, -2, 0]}, "censored, structure 2"),
        ({"censored": [-1, 0, 0]}, "censored"),
        ({"censored": [False, True, False]}, "censored"),
        ({"censored": [0, None, 0]}, "censored, structure 2"),
        ({"censored": None}, "censored, structure 1"),
        ({"accepted": [None, 0, 1]}, "censored, structure 1"),
        ({"accepted": None}, "censored, structure 1"),
    ],
)
def test_a_bad_value_is_named_by_row_column_and_structure(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        EveryPositionLog.from_rows([log_row(), log_row(prompt_id="b", **changes)], PROVENANCE)
    assert caught.value.place == f"row 1, column {place}"


@pytest.mark.parametrize("name", ["accepted", "censored"])
@pytest.mark.parametrize("lists", [[[1]], [[1, 0, 1, 0]], [[]], [[1, 0, -1]], [[1, 0, -7], [1, 0, 1]]], ids=repr)
def test_a_bad_list_in_a_file_is_named(tmp_path: Path, log: EveryPositionLog, name: str, lists: list[Any]) -> None:
    path = tmp_path / "log.parquet"
    log.write(path)
    rest = [[0, 0, 0]] * (log.n_rows - len(lists))
    rewrite(path, with_column(name, pa.array([*rest, *lists], type=pa.list_(pa.int64()))))
    with pytest.raises(InputError, match=rf"log\.parquet: row \d, column {name}"):
        EveryPositionLog.read(path)


@pytest.mark.parametrize("array", [pa.array([1, 2, 3, 4]), pa.array([[0.5, 0.5, 0.5]] * 4), pa.array([[[1]] * 3] * 4)])
def test_a_column_of_another_type_is_named(tmp_path: Path, log: EveryPositionLog, array: pa.Array) -> None:
    path = tmp_path / "log.parquet"
    log.write(path)
    rewrite(path, with_column("accepted", array))
    with pytest.raises(InputError, match=r"log\.parquet: column accepted"):
        EveryPositionLog.read(path)


@pytest.mark.parametrize(
    "structures", ["chain:3", ("chain:3", "auto", "tree"), ["chain:3", 4, "auto"], ["a", "a", "b"], ["", "a", "b"], {}]
)
def test_structures_are_a_list_of_distinct_texts(log: EveryPositionLog, tmp_path: Path, structures: Any) -> None:
    provenance = {"top_k": 0, "structures": structures}
    with pytest.raises(InputError, match="provenance, structures"):
        EveryPositionLog.from_rows([log_row()], provenance)
    with pytest.raises(InputError, match="provenance, structures"):
        replace(log, provenance=provenance)
    path = tmp_path / "log.parquet"
    log.write(path)
    if isinstance(structures, tuple):
        return
    metadata = json.dumps({"schema": "gumiho.every_position/1", **provenance})
    rewrite(path, lambda table: table.replace_schema_metadata({b"gumiho": metadata}))
    with pytest.raises(InputError, match=r"log\.parquet: provenance, structures"):
        EveryPositionLog.read(path)


def test_lengths_of_structures_that_nobody_names_are_refused(tmp_path: Path, log: EveryPositionLog) -> None:
    with pytest.raises(InputError, match="row 0, column accepted: found a list of 3"):
        EveryPositionLog.from_rows([log_row()], {"top_k": 0})
    with pytest.raises(InputError, match="column accepted: found shape"):
        replace(log, provenance={"top_k": 0})


def test_a_column_that_counts_as_missing_holds_nothing_that_writing_would_lose(log: EveryPositionLog) -> None:
    for name in ("accepted", "censored"):
        with pytest.raises(InputError, match=f"row 0, column {name}, structure 1: found .*counts as missing"):
            replace(log, missing=(name,))
    with pytest.raises(InputError, match="row 0, column rank, depth 1: found 2, .*counts as missing"):
        replace(log, rank=np.where(np.arange(4)[:, None] < 1, 2, 0))


def test_structures_too_many_for_memory_are_refused(
    tmp_path: Path, log: EveryPositionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(tmp_path / "log.parquet")
    monkeypatch.setattr(_schema, "MAX_CELLS", 11)
    with pytest.raises(InputError, match=r"found 4 x 3, wanted at most 11 cells"):
        EveryPositionLog.read(tmp_path / "log.parquet")
    with pytest.raises(InputError, match=r"found 4 x 3, wanted at most 11 cells"):
        EveryPositionLog.from_rows([log_row(position=i) for i in range(4)], PROVENANCE)
