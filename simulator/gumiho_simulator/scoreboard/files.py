"""The scoreboard of a folder of logs, and the files that it is written to."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gumiho_simulator.scoreboard.rows import ScoreRow, ScoreSummary
from gumiho_simulator.scoreboard.scoring import Progress, Scoreboard, scoreboard
from gumiho_theory import EveryPositionLog, InputError, Trace
from gumiho_theory.files import check_output, write_atomically, write_json
from gumiho_theory.json_output import plain

_MOST_FILES = 1000
SCHEMA = "gumiho.scoreboard/1"


def score_folder(
    folder: str | os.PathLike[str],
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    published: bool = True,
    progress: Progress | None = None,
) -> Scoreboard:
    """Score every forecast that the logs of a folder allow; see `read_logs` and `scoreboard`.

    Raises
    ------
    InputError
        No such folder, no log or trace in it, or nothing that could be scored.
    """
    logs, traces, unread = read_logs(folder)
    if not logs and not traces:
        found = "; ".join(unread) or f"{os.fspath(folder)}, no .parquet file"
        raise InputError("--scoreboard", found, "a folder with logs or traces")
    return scoreboard(logs, traces, seeds, published, progress, unread)


def read_logs(folder: str | os.PathLike[str]) -> tuple[dict[str, EveryPositionLog], dict[str, Trace], tuple[str, ...]]:
    """Read the every-position logs and cycle traces, files that end in .parquet, of a folder and the folders in it.

    Returns
    -------
    logs, traces : dict
        By path within the folder, in order.
    skipped : tuple of str
        Files that are neither, with the reason.

    Raises
    ------
    InputError
        No such folder, or more than 1000 such files. None at all is no error: the published curves remain.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(folder, "no folder", "a folder of logs (Parquet)")
    files = sorted(path for path in place.rglob("*.parquet") if path.is_file())
    if len(files) > _MOST_FILES:
        raise InputError(folder, f"{len(files)} .parquet files", f"at most {_MOST_FILES}")
    logs: dict[str, EveryPositionLog] = {}
    traces: dict[str, Trace] = {}
    skipped: list[str] = []
    for path in files:
        name = path.relative_to(place).as_posix()
        try:
            traces[name] = Trace.read(path)
        except InputError as no_trace:
            try:
                logs[name] = EveryPositionLog.read(path)
            except InputError as no_log:
                # Of a file of another schema one error says no more than that; the other is about the rows.
                told = no_trace if "every_position" in str(no_log) else no_log
                skipped.append(str(told))
    return logs, traces, tuple(skipped)


def write_scoreboard(board: Scoreboard, path: Path) -> tuple[Path, Path]:
    """Write the scoreboard as CSV and as JSON, under one name.

    Parameters
    ----------
    path
        One of the files, ending in .csv or .json, the other stands beside it; or the name of both without an ending.

    Returns
    -------
    tuple of Path
        The CSV and the JSON. The CSV has a column ``row``: forecast, summary, or skipped (with a note); the columns of
        forecasts come first, then those that only summaries have. An empty cell is unknown.

    Raises
    ------
    InputError
        Another suffix, or a file that cannot be written.
    """
    table, whole = check_places(path)
    text = _csv(board)
    write_atomically(table, lambda file: file.write(text.encode("utf-8")))
    write_json(whole, {"schema": SCHEMA, **plain(board.to_json())})
    return table, whole


def check_places(path: Path) -> tuple[Path, Path]:
    """Return the CSV and the JSON that `write_scoreboard` writes.

    Before hours of work: InputError where the name says another format or a file cannot be written.
    """
    if path.suffix not in ("", ".csv", ".json") or not path.name:
        raise InputError("--output", path.name, "a name that ends in .csv or .json, or in neither")
    table, whole = path.with_suffix(".csv"), path.with_suffix(".json")
    for place in (table, whole):
        check_output(place, ())
    return table, whole


def _csv(board: Scoreboard) -> str:
    columns = ["row", *dict.fromkeys((*ScoreRow.columns, *ScoreSummary.columns)), "convention"]
    convention = board.to_json()["convention"]
    lines: list[dict[str, Any]] = [{"row": "forecast", **row.to_json()} for row in board.rows]
    lines += [{"row": "summary", **one.to_json()} for one in board.summaries]
    lines += [{"row": "skipped", "note": note} for note in board.skipped]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: _cell(value) for name, value in {**line, "convention": convention}.items()})
    return text.getvalue()


def _cell(value: Any) -> Any:
    value = plain(value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value
