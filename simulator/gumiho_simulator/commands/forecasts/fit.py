"""`gumiho fit`: an acceptance model fitted to a log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json, LogFile
from gumiho_simulator.commands.shared.output import present, quantities, warnings_as_lines

_RANKS_SHOWN = 5


def fit(
    file: LogFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write (JSON).")],
    model: Annotated[
        str,
        typer.Option(
            help="auto, geometric, hazard, mixture, hmm (needs a trace) or rank (static trees; needs ranks); "
            "auto takes the best on held-out prompts."
        ),
    ] = "auto",
    json: Json = False,
) -> None:
    """Fit an acceptance model to a log.

    Example: gumiho fit trace.parquet --model auto -o model.json
    """
    from gumiho_simulator.forecasting import fit as fit_log
    from gumiho_simulator.forecasting import read_log
    from gumiho_theory.files import check_output

    check_output(output, [file])
    with warnings_as_lines():
        log = read_log(file)
    fitted = fit_log(log, model)
    fitted.write(output)
    result = {**fitted.summary(), "output": str(output)}
    present(result, json, lambda: _tables(result))


def _tables(result: dict[str, Any]) -> Iterator[Any]:
    from gumiho_simulator.reports.tables import table

    parameters = result["parameters"]
    rates = parameters.get("rates") if result["model"] == "rank" else None
    rows = [(key, value) for key, value in result.items() if key != "parameters"]
    yield quantities(rows + ([] if rates else list(parameters.items())))
    if rates:
        shown = min(_RANKS_SHOWN, len(rates[0]))
        ranked = [[depth, *one[:shown], sum(one[shown:])] for depth, one in enumerate(rates, start=1)]
        headings = ("depth", *(f"rank {rank}" for rank in range(1, shown + 1)), "further")
        yield table(headings, ranked, "P(the true token has the rank | the path before it was right)")
        yield f"all {len(rates[0])} ranks: --json, or {result['output']}"
