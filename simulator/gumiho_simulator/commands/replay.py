"""The command `gumiho replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumiho_theory.json_output import dumps


def replay(
    log: Annotated[Path, typer.Argument(help="Every-position log (Parquet).")],
    structures: Annotated[
        list[str],
        typer.Option(help="Structures, such as chain:3 static:tree.json; after the log file."),
    ],
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Replay draft structures on logged texts: tau (bonus included, micro) as a run of each would have measured it.

    Chains and static trees as deep as the log, and the dynamic trees that it holds.

    Example: gumiho replay log.parquet --structures chain:1 chain:3 static:tree.json
    """
    from gumiho_simulator.replaying.replayed import replay as replay_structures
    from gumiho_theory import EveryPositionLog

    # Click gives an option one value; the further ones of `--structures A B C` arrive as arguments.
    result = replay_structures(EveryPositionLog.read(log), [*structures, *(more or [])]).to_json()
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import notes_of, show, table

    columns = ("structure", "tau", "lo", "hi", "cycles", "censored_cycles", "exact")
    lines = "tau: bonus included, micro, over complete cycles; intervals 95 %, prompts resampled"
    show(
        table(columns, [[row[column] for column in columns] for row in result["rows"]]),
        lines,
        *notes_of(result["rows"]),
    )
