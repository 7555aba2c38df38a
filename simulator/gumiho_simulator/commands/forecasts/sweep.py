"""`gumiho sweep`: many forecasts, in parallel and resumable."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json
from gumiho_simulator.commands.shared.output import present, progress_bar, quantities


def sweep(
    grid: Annotated[Path, typer.Argument(help="JSON: models, structures and, optional, profiles, each a list.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Forecasts to write (Parquet).")],
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler that you trust, such as tcp://host:8786.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what the output holds, compute the rest.")] = False,
    json: Json = False,
) -> None:
    """Forecast every model with every structure, under every cost profile.

    Example: gumiho sweep grid.json -o forecasts.parquet --jobs 4
    """
    from gumiho_simulator.allocating import Grid
    from gumiho_simulator.allocating import sweep as run
    from gumiho_theory.files import check_output

    asked = Grid.read(grid)
    check_output(output, [grid, *asked.models, *asked.profiles])
    with progress_bar("forecasting", asked.cells) as update:

        def progress(done: int, cells: int) -> None:
            update(completed=done, total=cells)

        try:
            done = run(asked, output, jobs=jobs, scheduler=scheduler, resume=resume, progress=progress)
        except KeyboardInterrupt:
            print(f"stopped early: what is done is in {output}; go on with --resume", file=sys.stderr)
            raise
    result = done.to_json()
    present(result, json, lambda: _tables(result))


def _tables(result: dict[str, Any]) -> list[Any]:
    rows = [(key, value) for key, value in result.items() if key != "best"]
    return [quantities(rows + [(f"fastest: {key}", value) for key, value in (result["best"] or {}).items()])]
