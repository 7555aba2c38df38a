"""`gumiho cost`: what a cycle costs, fitted to logged times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json
from gumiho_simulator.commands.shared.output import present, quantities
from gumiho_theory import InputError


def cost(
    files: Annotated[
        list[Path], typer.Argument(help="Cycle traces (Parquet) of one drafter, or one cost profile (.json).")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Cost profile to write (JSON).")] = None,
    baseline_ms: Annotated[
        float | None, typer.Option(help="One step of plain decoding, for the profile: no trace holds it.")
    ] = None,
    json: Json = False,
) -> None:
    """Fit what a cycle costs to logged times; a line or a stair, as predicts left-out lengths better.

    Example: gumiho cost chain1.parquet chain3.parquet chain7.parquet --baseline-ms 38.2 -o profile.json
    """
    from gumiho_simulator.costs import CycleCost, fit_costs
    from gumiho_theory.files import check_output

    if (output is None) != (baseline_ms is None):
        raise InputError("options", "one of -o and --baseline-ms", "both or neither")
    if output is not None:
        check_output(output, files)
    profiles = [path for path in files if path.suffix.lower() == ".json"]
    if profiles and (len(files) > 1 or output is not None):
        raise InputError("files", f"{len(files)} with a profile among them", "one profile alone, and no -o")
    found = fit_costs(files)
    result = found.to_json()
    if isinstance(found, CycleCost) and output is not None and baseline_ms is not None:
        found.to_profile(baseline_ms / 1000).write(output)
        result["output"] = str(output)
    present(result, json, lambda: _tables(result))


def _tables(result: dict[str, Any]) -> Iterator[Any]:
    from gumiho_simulator.reports.tables import table

    yield quantities([(key, value) for key, value in result.items() if key != "errors"])
    if result["errors"]:
        columns = ("kind", "mean", "rms", "worst", "sizes")
        errors = [[one[column] for column in columns] for one in result["errors"]]
        yield table(columns, errors, "relative error, each size left out in turn")
