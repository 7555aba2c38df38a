"""No command writes over what it reads: a log that took hours is not worth a slip of the finger."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gumiho_simulator.forecasting.fitting import fit
from gumiho_theory import InputError, Trace
from gumiho_theory.files import check_output

COMMANDS = [
    ("fit", "trace.parquet", "-o", "trace.parquet"),
    ("tree", "trace.parquet", "-o", "trace.parquet"),
    ("calibrate", "trace.parquet", "-o", "trace.parquet"),
    ("cost", "trace.parquet", "--baseline-ms", "10", "-o", "trace.parquet"),
    ("sweep", "grid.json", "-o", "grid.json"),
    ("sweep", "grid.json", "-o", "model.json"),
    ("traces", "import", "trace.parquet", "-o", "trace.parquet"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]) + f" to {words[-1]}")
def test_an_input_is_never_written_over(
    words: tuple[str, ...], run: Callable[..., object], trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace.write("trace.parquet")
    fit(trace, "hazard").write("model.json")
    Path("grid.json").write_text(json.dumps({"models": ["model.json"], "structures": ["chain:1"]}))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="not one of the inputs"):
        run(*words)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("words", [one for one in COMMANDS if one[0] != "sweep"], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("output", "found"),
    [("none/made", "no folder 'none'"), (".", "a folder or a device"), ("x" * 300, "File name too long")],
    ids=["no folder", "a folder", "too long"],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_read(
    words: tuple[str, ...],
    output: str,
    found: str,
    run: Callable[..., object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where there is no log either, which nobody comes to see
    with pytest.raises(InputError, match=f": found .*{found}"):
        run(*words[:-1], output)
    assert not list(tmp_path.iterdir())


def test_a_link_to_an_input_is_that_input_and_other_files_are_free(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "log")
    with pytest.raises(InputError, match="not one of the inputs"):
        check_output(tmp_path / "link", [tmp_path / "log"])
    (tmp_path / "old").write_text("b")
    for free in ("old", "new"):
        check_output(tmp_path / free, [tmp_path / "log", tmp_path / "missing"])


def test_links_and_pipes_that_no_file_can_replace_are_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "far").symlink_to(tmp_path / "none" / "x")
    for name, found in (("loop", "a link that leads nowhere"), ("far", "no folder 'none'"), ("/dev/null", "a device")):
        with pytest.raises(InputError, match=found):
            check_output(tmp_path / name, [])
    (tmp_path / "free").symlink_to(tmp_path / "x")
    check_output(tmp_path / "free", [])
    reading, writing = os.pipe()
    try:
        with pytest.raises(InputError, match="a folder or a device"):
            check_output(f"/proc/self/fd/{writing}", [])
    finally:
        os.close(reading)
        os.close(writing)


def test_a_roofline_does_not_replace_the_shape_it_reads(
    run: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text("{}")
    asked = ("roofline", "--shape", "config.json", "--method", "eagle", "--accelerator", "A100", "-o", "config.json")
    with pytest.raises(InputError, match="not one of the inputs"):
        run(*asked)
    assert Path("config.json").read_text() == "{}"


@pytest.mark.parametrize("output", ["folder.csv", "board.csv", "none/x"])
def test_a_scoreboard_that_cannot_be_written_is_refused_before_its_logs_are_read(
    output: str, run: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("folder.csv", "board.json"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="a folder or a device|no folder 'none'"):
        run("validate", "--scoreboard", "no such logs", "-o", output)


@pytest.mark.parametrize("published", [[], ["--no-published"]])
def test_a_scoreboard_of_no_log_is_refused(published: list[str], run: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("x")
    with pytest.raises(InputError, match="no .parquet file, wanted a folder with logs or traces"):
        run("validate", "--scoreboard", tmp_path / "logs", "-o", tmp_path / "x.csv", *published)
    assert not (tmp_path / "x.csv").exists()
