"""`gumiho validate`: a model judged on held-out prompts of one trace, or the scoreboard of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json
from gumiho_simulator.commands.shared.output import RESAMPLED, present, progress_bar
from gumiho_theory import InputError

if TYPE_CHECKING:
    from gumiho_simulator.forecasting import Validation
    from gumiho_simulator.scoreboard import Scoreboard

_SOURCES = {"replay": "every-position logs, replayed", "trace": "cycle traces", "published": "published curves"}


def validate(
    file: Annotated[Path | None, typer.Argument(help="Cycle trace (Parquet).")] = None,
    holdout: Annotated[float, typer.Option(help="Share of the prompts to hold out.")] = 0.5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the (first) split and of the resampling.")] = 0,
    scoreboard: Annotated[
        Path | None, typer.Option(help="Instead of a trace: a folder of every-position logs and cycle traces.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Scoreboard to write: NAME.csv and NAME.json.")
    ] = None,
    splits: Annotated[int, typer.Option(min=1, max=1000, help="Scoreboard: splits of the prompts of each log.")] = 5,
    published: Annotated[bool, typer.Option(help="Scoreboard: the published curves too.")] = True,
    figure: Annotated[Path | None, typer.Option(help="Scoreboard: also draw it here (.svg, .png, .pdf).")] = None,
    json: Json = False,
) -> None:
    """Fit on some prompts, forecast tau of the others, compare.

    With --scoreboard: models fitted to chain:3 forecast other chains and trees, over every log of a folder.

    Example: gumiho validate trace.parquet --holdout 0.5 --seed 0

    Example: gumiho validate --scoreboard runs/logs -o scoreboard.csv --figure scoreboard.svg
    """
    if (file is None) == (scoreboard is None):
        raise InputError("validate", "both or neither", "either a trace or --scoreboard FOLDER")
    if scoreboard is not None:
        if holdout != 0.5:
            raise InputError("--holdout", holdout, "0.5 with --scoreboard: half of the prompts")
        if output is None:
            raise InputError("--output", "none", "a file for the scoreboard, -o scoreboard.csv")
        board, written = _score(scoreboard, output, range(seed, seed + splits), published, figure)
        present({**board.to_json(), "output": written}, json, lambda: _board_tables(board, written))
        return
    if output is not None or figure is not None:
        raise InputError("--output or --figure", output or figure, "--scoreboard FOLDER with it")

    from gumiho_simulator.forecasting import validate as validate_trace
    from gumiho_theory import Trace

    assert file is not None
    done = validate_trace(Trace.read(file), holdout, seed)
    present(done.to_json(), json, lambda: _trace_tables(done))


def _trace_tables(done: Validation) -> list[Any]:
    from gumiho_simulator.reports.tables import table, text

    columns = ("model", "structure", "predicted", "lo", "hi", "measured", "relative_error", "inside")
    rows = [[getattr(row, column) for column in columns] for row in done.rows]
    floor = f"median error of a perfect model with {len(done.holdout_prompts)} prompts: {text(done.sampling_floor)}"
    return [table(columns, rows), f"tau: bonus included, micro; {RESAMPLED}", floor]


def _score(
    folder: Path, output: Path, seeds: range, published: bool, figure: Path | None
) -> tuple[Scoreboard, list[str]]:
    """Score forecasts over the logs of a folder; return the scoreboard and the files written."""
    from gumiho_simulator.scoreboard import check_places, score_folder, write_scoreboard

    places = check_places(output)
    if figure is not None:
        from gumiho_simulator.figures.file import check_figure
        from gumiho_simulator.figures.scoreboard import write_scoreboard_figure

        check_figure(figure, places)
    with progress_bar("scoring", None) as update:

        def progress(words: str, pieces: int) -> None:
            update(total=pieces, advance=1, description=words)

        board = score_folder(folder, tuple(seeds), published, progress)
    written = [str(path) for path in write_scoreboard(board, output)]
    if figure is not None:
        write_scoreboard_figure(board.rows, figure)
        written.append(str(figure))
    return board, written


def _board_tables(board: Scoreboard, written: list[str]) -> Iterator[Any]:
    from gumiho_simulator.reports.tables import table
    from gumiho_simulator.scoreboard.rows import SAME

    def percent(value: float | None, digits: int = 1) -> str:
        return "–" if value is None else f"{100 * value:.{digits}f}"

    for source in dict.fromkeys(one.source for one in board.summaries):
        here = [one for one in board.summaries if one.source == source and one.forecasts]
        kinds = {(one.model, one.forecasts) for one in here if one.kind not in ("all", SAME)}
        rows = [
            [
                one.model,
                one.kind.removesuffix(" tree"),
                one.forecasts,
                percent(one.median_abs_error),
                percent(one.worst_abs_error),
                percent(one.sampling_floor),
                percent(one.sampling_floor_95),
                percent(one.coverage, 0),
                "–" if one.interval_score_to_hazard is None else f"{one.interval_score_to_hazard:.2f}",
            ]
            for one in here
            if one.kind != "all" or (one.model, one.forecasts) not in kinds  # the only kind it forecasts says as much
        ]
        columns = ("model", "of", "n", "error", "worst", "floor", "1 in 20", "inside", "score")
        yield table(columns, rows, _SOURCES[source])
    yield (
        "error, worst: median and largest absolute error of tau, % of the measured; floor, 1 in 20: median error of a "
        "perfect model with these prompts, and what it exceeds one time in twenty (a fit to as many other prompts adds "
        "noise of its own: the best one errs by 1.4 times as much)"
    )
    yield (
        "inside: % of 95 % intervals that hold the measured tau; score: interval score over the hazard model's on the "
        "same forecasts, lower is better"
    )
    yield f"{board.to_json()['convention']}; splits: seeds {', '.join(map(str, board.seeds))}"
    refused = sum(row.forecast is None for row in board.rows)
    if refused:
        yield f"{refused} forecasts refused, each with its reason in the file"
    yield from (f"left out: {note}" for note in board.skipped)
    yield f"written: {', '.join(written)}"
