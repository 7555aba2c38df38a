"""`gumiho replay`: what other structures would have had accepted on logged texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json, More
from gumiho_simulator.commands.shared.output import RESAMPLED, TAU, present


def replay(
    log: Annotated[Path, typer.Argument(help="Every-position log (Parquet).")],
    structures: Annotated[
        list[str],
        typer.Option(help="Structures, such as chain:3 static:tree.json; after the log file."),
    ],
    more: More = None,
    json: Json = False,
) -> None:
    """Replay draft structures on logged texts: tau (bonus included, micro) as a run of each would have measured it.

    Chains and static trees as deep as the log, and the dynamic trees that it holds.

    Example: gumiho replay log.parquet --structures chain:1 chain:3 static:tree.json
    """
    from gumiho_simulator.replaying import replay as replay_structures
    from gumiho_theory import EveryPositionLog

    result = replay_structures(EveryPositionLog.read(log), [*structures, *(more or [])]).to_json()
    present(result, json, lambda: _tables(result["rows"]))


def _tables(rows: list[dict[str, Any]]) -> list[Any]:
    from gumiho_simulator.reports.tables import notes_of, table

    columns = ("structure", "tau", "lo", "hi", "cycles", "censored_cycles", "exact")
    shown = table(columns, [[row[column] for column in columns] for row in rows])
    return [shown, f"{TAU}; {RESAMPLED}", *notes_of(rows)]
