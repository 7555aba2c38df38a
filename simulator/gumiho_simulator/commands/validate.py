"""The command `gumiho validate`: one trace, or the scoreboard of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_theory import InputError
from gumiho_theory.json_output import dumps

if TYPE_CHECKING:
    from gumiho_simulator.scoreboard.board import Scoreboard


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
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
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
        _scoreboard(scoreboard, output, range(seed, seed + splits), published, figure, json)
        return
    if output is not None or figure is not None:
        raise InputError("--output or --figure", output or figure, "--scoreboard FOLDER with it")
    assert file is not None
    _one_trace(file, holdout, seed, json)


def _one_trace(file: Path, holdout: float, seed: int, json: bool) -> None:
    from gumiho_simulator.forecasting.validation import validate as validate_trace
    from gumiho_theory import Trace

    done = validate_trace(Trace.read(file), holdout, seed)
    if json:
        typer.echo(dumps(done.to_json()))
        return

    from gumiho_simulator.reports.tables import show, table, text

    columns = ("model", "structure", "predicted", "lo", "hi", "measured", "relative_error", "inside")
    rows = [[getattr(row, column) for column in columns] for row in done.rows]
    n = len(done.holdout_prompts)
    floor = f"median error of a perfect model with {n} prompts: {text(done.sampling_floor)}"
    show(table(columns, rows), "tau: bonus included, micro; intervals 95 %, prompts resampled", floor)


def _scoreboard(folder: Path, output: Path, seeds: range, published: bool, figure: Path | None, json: bool) -> None:
    from gumiho_simulator.scoreboard.files import check_places, score_folder, write_scoreboard

    places = check_places(output)
    if figure is not None:
        from gumiho_simulator.figures.file import check_figure
        from gumiho_simulator.figures.scoreboard import write_scoreboard_figure

        check_figure(figure, places)
    with _progress() as progress:
        board = score_folder(folder, tuple(seeds), published, progress)
    written = [str(path) for path in write_scoreboard(board, output)]
    if figure is not None:
        write_scoreboard_figure(board.rows, figure)
        written.append(str(figure))
    if json:
        typer.echo(dumps({**board.to_json(), "output": written}))
        return
    _show(board, written)


def _show(board: Scoreboard, written: list[str]) -> None:
    from gumiho_simulator.reports.tables import show, table
    from gumiho_simulator.scoreboard.rows import SAME

    def percent(value: float | None, digits: int = 1) -> str:
        return "–" if value is None else f"{100 * value:.{digits}f}"

    parts: list[Any] = []
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
        names = {"replay": "every-position logs, replayed", "trace": "cycle traces", "published": "published curves"}
        columns = ("model", "of", "n", "error", "worst", "floor", "1 in 20", "inside", "score")
        parts.append(table(columns, rows, names[source]))
    lines = [
        "error, worst: median and largest absolute error of tau, % of the measured; floor, 1 in 20: median error of a "
        "perfect model with these prompts, and what it exceeds one time in twenty (a fit to as many other prompts adds "
        "noise of its own: the best one errs by 1.4 times as much)",
        "inside: % of 95 % intervals that hold the measured tau; score: interval score over the hazard model's on the "
        "same forecasts, lower is better",
        f"{board.to_json()['convention']}; splits: seeds {', '.join(map(str, board.seeds))}",
    ]
    refused = sum(row.forecast is None for row in board.rows)
    lines += [f"{refused} forecasts refused, each with its reason in the file"] if refused else []
    left_out = [f"left out: {note}" for note in board.skipped]
    show(*parts, *lines, *left_out, f"written: {', '.join(written)}")


@contextmanager
def _progress() -> Iterator[Callable[[str, int], object]]:
    """Show a bar on standard error, on a terminal only."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("scoring", total=None)

        def tell(words: str, pieces: int) -> None:
            bar.update(task, total=pieces, advance=1, description=words)

        yield tell
