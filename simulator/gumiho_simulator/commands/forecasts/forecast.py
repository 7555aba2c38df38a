"""`gumiho forecast`: tau and speed of draft structures, from a model or from published points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json, More
from gumiho_simulator.commands.shared.output import TAU, present
from gumiho_theory import InputError

if TYPE_CHECKING:
    from gumiho_simulator.costs import ForecastSpeeds


def forecast(
    model: Annotated[Path | None, typer.Argument(help="Model file written by fit.")] = None,
    more: More = None,
    lengths: Annotated[str | None, typer.Option(help="Chain lengths, comma-separated.")] = None,
    structures: Annotated[
        list[str] | None, typer.Option(help="Structures, such as chain:3 chain:5; after the model file.")
    ] = None,
    tau_by_length: Annotated[
        str | None, typer.Option(help="Published points K:tau, comma-separated, in place of a model file.")
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="Cost profile (JSON), for speed-ups.")] = None,
    json: Json = False,
) -> None:
    """Forecast tau (bonus included, micro) of draft structures, with 95 % intervals.

    Example: gumiho forecast model.json --lengths 1,2,3,5,7
    """
    from gumiho_simulator.commands.shared.typed import parse_lengths
    from gumiho_simulator.costs import forecast_speeds
    from gumiho_simulator.forecasting import FitResult, parse_points
    from gumiho_theory import CostProfile

    if more and not structures:
        raise InputError("arguments", " ".join(more), "one model file; structures follow --structures")
    asked = [*(structures or []), *(more or [])]
    if (lengths is None) == (not asked):
        raise InputError("forecast", "both or neither", "either --lengths or --structures")
    if (model is None) == (tau_by_length is None):
        raise InputError("forecast", "both or neither", "either a model file or --tau-by-length")
    chains = [] if lengths is None else [f"chain:{length}" for length in parse_lengths("--lengths", lengths)]
    costs = None if profile is None else CostProfile.read(profile)
    if model is None and asked:
        raise InputError("--structures", " ".join(asked), "--lengths, since points are for chains")
    source = parse_points(tau_by_length or "") if model is None else FitResult.read(model)
    found = forecast_speeds(source, asked or chains, costs)
    present(found.to_json(), json, lambda: _tables(found))


def _tables(found: ForecastSpeeds) -> Iterator[Any]:
    from gumiho_simulator.reports.tables import notes_of, table, text

    columns, rows = ["structure", "tau", "95 %", "supported"], []
    for one in found.rows:
        rows.append([one["structure"], one["tau"], text((one["lo"], one["hi"])), one["supported"]])
        if found.timed:
            rows[-1] += [text(one["speedup"], 2), text((one["speedup_lo"], one["speedup_hi"]), 2)]
    yield table(columns + (["speedup", "95 %"] if found.timed else []), rows)
    yield f"{TAU}; 95 % limits for a further measurement"
    yield from (*notes_of(found.rows), *found.verdicts())
