"""The command `gumiho importance`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumiho_theory.json_output import dumps


def importance(
    log: Annotated[Path, typer.Argument(help="Every-position log (Parquet).")],
    length: Annotated[int | None, typer.Option(min=1, help="Of the chain; as deep as the log unless given.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the gains here (.svg, .png or .pdf).")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Tell which draft position matters most: tau if the head of one position never erred, all else as logged.

    Example: gumiho importance log.parquet --length 7
    """
    from gumiho_simulator.figures.file import check_figure
    from gumiho_simulator.replaying.worth import importance as of_positions
    from gumiho_theory import EveryPositionLog

    if figure is not None:
        check_figure(figure, [log])
    found = of_positions(EveryPositionLog.read(log), length, seed)
    if figure is not None:
        from gumiho_simulator.figures.importance import write_importance

        write_importance({log.stem: found}, figure)
    if json:
        typer.echo(dumps(found.to_json()))
        return

    from gumiho_simulator.reports.tables import show, table

    columns = ("position", "tau", "gain", "lo", "hi", "per_error")
    show(
        table(columns, [[getattr(row, column) for column in columns] for row in found]),
        "tau: bonus included, micro, complete cycles, if that position's head never erred; gain: over the log as it is",
        "intervals 95 %, prompts resampled; per error: the gain for each cycle that ends by an error there",
    )
