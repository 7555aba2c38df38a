"""gumiho sweep: many forecasts, in parallel and resumable."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from gumiho_theory.json_output import dumps

_BEST = ("model", "structure", "profile", "tau", "speedup")


def sweep(
    grid: Annotated[Path, typer.Argument(help="JSON: models, structures and, optional, profiles, each a list.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Forecasts to write (Parquet).")],
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler that you trust, such as tcp://host:8786.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what the output holds, compute the rest.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Forecast every model with every structure, under every cost profile.

    Example: gumiho sweep grid.json -o forecasts.parquet --jobs 4
    """
    from gumiho_simulator.allocating.sweeps.run import Grid
    from gumiho_simulator.allocating.sweeps.run import sweep as run
    from gumiho_theory.files import check_output

    asked = Grid.read(grid)
    check_output(output, [grid, *asked.models, *asked.profiles])
    with _progress(asked.cells) as progress:
        try:
            done = run(asked, output, jobs=jobs, scheduler=scheduler, resume=resume, progress=progress)
        except KeyboardInterrupt:
            print(f"stopped early: what is done is in {output}; go on with --resume", file=sys.stderr)
            raise
    fast = [row for row in done.rows if row.get("speedup") is not None and row["supported"]]
    best = max(fast, key=lambda row: float(row["speedup"]), default=None)
    result: dict[str, Any] = {
        "cells": asked.cells,
        "computed": done.computed,
        "reused": done.reused,
        "without_tau": sum(row.get("tau") is None for row in done.rows),
        "best": None if best is None else {key: best[key] for key in _BEST},
        "output": str(output),
    }
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table

    rows = [(key, value) for key, value in result.items() if key != "best"]
    rows += [(f"fastest: {key}", value) for key, value in (result["best"] or {}).items()]
    show(table(("quantity", "value"), rows))


@contextmanager
def _progress(cells: int) -> Iterator[Callable[[int, int], object]]:
    """Show a bar on standard error, on a terminal only."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("forecasting", total=cells)
        yield lambda done, total: bar.update(task, completed=done, total=total)
