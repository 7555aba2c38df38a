"""`gumiho importance`: which draft position matters most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json, Seed
from gumiho_simulator.commands.shared.output import RESAMPLED, present

if TYPE_CHECKING:
    from gumiho_simulator.replaying import PositionImportance


def importance(
    log: Annotated[Path, typer.Argument(help="Every-position log (Parquet).")],
    length: Annotated[int | None, typer.Option(min=1, help="Of the chain; as deep as the log unless given.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the gains here (.svg, .png or .pdf).")] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Tell which draft position matters most: tau if the head of one position never erred, all else as logged.

    Example: gumiho importance log.parquet --length 7
    """
    from gumiho_simulator.figures.file import check_figure
    from gumiho_simulator.replaying import importance as of_positions
    from gumiho_theory import EveryPositionLog

    if figure is not None:
        check_figure(figure, [log])
    found = of_positions(EveryPositionLog.read(log), length, seed)
    if figure is not None:
        from gumiho_simulator.figures.importance import write_importance

        write_importance({log.stem: found}, figure)
    present(found.to_json(), json, lambda: _tables(found))


def _tables(found: Sequence[PositionImportance]) -> list[Any]:
    from gumiho_simulator.reports.tables import table

    columns = ("position", "tau", "gain", "lo", "hi", "per_error")
    return [
        table(columns, [[getattr(row, column) for column in columns] for row in found]),
        "tau: bonus included, micro, complete cycles, if that position's head never erred; gain: over the log as it is",
        f"{RESAMPLED}; per error: the gain for each cycle that ends by an error there",
    ]
