"""`gumiho compare`: whether tau of two logs differs, and how many prompts would tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json, Seed
from gumiho_simulator.commands.shared.output import present, quantities, warnings_as_lines

if TYPE_CHECKING:
    from gumiho_simulator.forecasting import Comparison


def compare(
    a: Annotated[Path, typer.Argument(help="Log A: any that `traces show` reads.")],
    b: Annotated[Path, typer.Argument(help="Log B.")],
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Tell whether tau of two logs differs, paired by prompt, and how many prompts it takes to tell.

    Example: gumiho compare a.parquet b.parquet
    """
    from gumiho_simulator.forecasting import compare as compare_logs
    from gumiho_simulator.forecasting import read_log

    with warnings_as_lines():
        logs = [read_log(a), read_log(b)]
    found = compare_logs(logs[0], logs[1], seed)
    present(found.to_json(), json, lambda: _tables(found, found.clusters))


def _tables(found: Comparison, groups: str) -> Iterator[Any]:
    sizes = found.prompts_a if found.paired else f"{found.prompts_a} and {found.prompts_b}"
    limits = f"{found.prompts_needed_lo or '–'} to {found.prompts_needed_hi or 'any number'}"
    yield quantities(
        [
            ("tau A", found.tau_a),
            ("tau B", found.tau_b),
            ("B - A", found.difference),
            ("95 %", (found.lo, found.hi)),
            ("different", found.different),
            (groups, sizes),
            ("paired", found.paired),
            (f"{groups} left out", found.dropped),
            (f"{groups} needed", found.prompts_needed),
            ("needed, 95 %", limits),
        ]
    )
    yield found.to_json()["tau_convention"].replace("prompts", groups)
    meant = f"needed: {groups} of each log that tell such a difference from 0 {found.power:.0%} of the time"
    yield f"{meant}; its limits are those of B - A"
