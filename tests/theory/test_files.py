from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gumiho_theory import AcceptanceCounts, InputError
from gumiho_theory.files import Schema, read_json, write_atomically, write_json


def test_json_round_trip_leaves_only_the_file(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"x": [1, 2.5, None], "y": "é"})
    assert read_json(tmp_path / "a.json") == {"x": [1, 2.5, None], "y": "é"}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_failed_write_keeps_the_old_file_and_leaves_no_temporary(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail(file: object) -> None:
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_nan_is_refused_and_the_old_file_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="a.json"):
        write_json(path, {"x": float("nan")})
    assert path.read_text() == "{}"


@pytest.mark.parametrize("name", ["missing/a.json", "file/a.json", ".", "nul\0l"])
def test_file_that_cannot_be_written_is_an_input_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        write_json(f"{tmp_path}/{name}", {})


def test_written_files_follow_the_umask_like_any_other_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_json(tmp_path / "a.json", {})
    assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[1]",
        b"{",
        b"\xff\xfe",
        b'{"x": NaN}',
        b'{"x": -Infinity}',
        b"[" * 100_000,
        b'{"x": ' + b"9" * 9999 + b"}",
    ],
    ids=["empty", "list", "cut", "not utf-8", "nan", "infinity", "deep", "endless integer"],
)
def test_what_is_not_one_json_object_is_refused_with_its_path(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_json(path)
    assert str(path) in str(caught.value)


def test_reading_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"x": "y" * 100}))
    with pytest.raises(InputError, match="at most 50 bytes"):
        read_json(path, max_bytes=50)


@pytest.mark.parametrize("name", ["missing.json", ".", "nul\0l"])
def test_file_that_cannot_be_read_is_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        read_json(f"{tmp_path}/{name}")


def test_a_link_is_written_through_and_a_folder_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write_json(tmp_path / "link.json", {"a": 1})
    assert (tmp_path / "link.json").is_symlink()
    assert read_json(tmp_path / "real.json") == {"a": 1}
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InputError, match="a folder or a device"):
            write_json(tmp_path / name, {"a": 1})
    assert (tmp_path / "pipe").is_fifo()


def test_a_schema_takes_its_own_tag_and_additive_minors_alone() -> None:
    schema = Schema("gumiho.trace", 2)
    assert schema.tag == "gumiho.trace/2"
    schema.check("gumiho.trace/2")
    schema.check("gumiho.trace/2.7")
    for found in (None, 2, "gumiho.trace", "gumiho.trace/1", "gumiho.trace/02x", "gumiho.tree/2"):
        with pytest.raises(InputError, match=r"^schema: found .*, wanted gumiho.trace/2$"):
            schema.check(found)
    with pytest.raises(InputError, match="written by a newer version of this toolkit"):
        schema.check("gumiho.trace/3")


def test_a_value_with_a_schema_is_read_as_it_was_written_and_errors_name_the_file(tmp_path: Path) -> None:
    counts = AcceptanceCounts(("a", "b"), [3, 4], [2, 2], [3, 4], [[3, 2], [4, 1]], [[2, 1], [2, 0]], "prompts")
    path = tmp_path / "counts.json"
    counts.write(path)
    assert next(iter(read_json(path))) == "schema"
    assert AcceptanceCounts.read(path).to_json() == counts.to_json()
    path.write_text(json.dumps({**counts.to_json(), "cycles": [1, 4]}))
    with pytest.raises(InputError, match=r"counts.json: group 'a', complete_cycles: found 3"):
        AcceptanceCounts.read(path)
