"""`gumiho allocate`: the fastest allocation of serial and parallel heads among logged ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json, Seed
from gumiho_simulator.commands.shared.output import present, warned

if TYPE_CHECKING:
    from gumiho_simulator.allocating import Allocations


def allocate(
    profile: Annotated[
        Path,
        typer.Option(help="Cost profile (JSON) from gumiho profile, roofline or cost; or a folder, one a drafter."),
    ],
    traces: Annotated[Path, typer.Option(help="Folder of cycle traces (Parquet), one an allocation.")],
    figure: Annotated[Path | None, typer.Option(help="Draw tau against cycle time here (.svg, .png, .pdf).")] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Find the fastest allocation of serial and parallel heads among logged ones, under a cost profile.

    Example: gumiho allocate --profile profile.json --traces runs/allocations
    """
    from gumiho_simulator.allocating import allocate_folder

    if figure is not None:
        from gumiho_simulator.figures.file import check_figure

        check_figure(figure)
    found = allocate_folder(profile, traces, seed)
    if figure is not None:
        from gumiho_simulator.figures.allocations import write_front

        write_front(found, figure)
    present(found.to_json(), json, lambda: _tables(found))


def _tables(found: Allocations) -> Iterator[Any]:
    from gumiho_simulator.reports.tables import table, text

    columns = ("trace", "heads", "tau", "95 %", "ms", "speedup", "95 %", "front")
    rows = [
        [
            Path(row.source or "").stem,
            row.heads,
            text(row.tau, 2),
            text((row.lo, row.hi), 2),
            text(1000 * row.cycle_seconds, 2),
            text(row.speedup, 2),
            text((row.speedup_lo, row.speedup_hi), 2),
            "yes" if row in found.front else "",
        ]
        for row in sorted(found.rows, key=lambda row: -row.speedup)
    ]
    yield table(columns, rows)
    yield f"best: {found.best}, {found.best.speedup:.3f}x plain decoding"
    if found.regret is not None and found.best_probability is not None:
        loss = f"expected loss by choosing it {found.regret:.4f}x"
        yield f"fastest in {found.best_probability:.0%} of resamples of {found.prompts} prompts; {loss}"
    yield "heads: serial steps x layers of each + parallel heads"
    yield found.convention
    yield from (f"assumed: {one}" for one in found.assumptions)
    yield from warned(found.warnings)
