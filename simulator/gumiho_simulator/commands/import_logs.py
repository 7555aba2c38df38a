"""``gumiho traces import``: an engine's log into a trace or counts; and a log's warnings for people."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gumiho_theory.json_output import dumps


def import_traces(
    files: Annotated[list[Path], typer.Argument(help="Logs of one format.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Trace (Parquet) or counts (JSON) to write.")],
    form: Annotated[str, typer.Option("--format", help="auto: told by the content; or a format's name.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Read logs of vLLM, SGLang, TensorRT-LLM, llama.cpp, EAGLE, Medusa, Hydra, Gumiho, Spec-Bench, HASS, … .

    Logs that list every cycle become a cycle trace, all others acceptance counts by group.

    Example: gumiho traces import server.log -o counts.json; then gumiho traces show counts.json
    """
    from gumiho_simulator.importers import import_logs
    from gumiho_theory.files import check_output

    check_output(output, files)
    reading = import_logs(files, form).write(output)
    result = {**reading.to_json(), "output": str(output)}
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table

    rows = [(key, value) for key, value in result.items() if key != "warnings"]
    show(table(("quantity", "value"), rows), *(f"warning: {note}" for note in reading.warnings))


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print what a log warns of as lines on standard error, where a table or one JSON object is the result."""
    from gumiho_simulator.forecasting.summary import LogWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LogWarning)
        yield
    for one in caught:
        if issubclass(one.category, LogWarning):
            print(f"warning: {one.message}", file=sys.stderr)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
