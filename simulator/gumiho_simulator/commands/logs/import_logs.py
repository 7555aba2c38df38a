"""`gumiho traces import`: logs of other engines made a cycle trace or counts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumiho_simulator.commands.shared.options import Json
from gumiho_simulator.commands.shared.output import present, quantities, warned


def import_logs(
    files: Annotated[list[Path], typer.Argument(help="Logs of one format.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Trace (Parquet) or counts (JSON) to write.")],
    form: Annotated[str, typer.Option("--format", help="auto: told by the content; or a format's name.")] = "auto",
    json: Json = False,
) -> None:
    """Read logs of vLLM, SGLang, TensorRT-LLM, llama.cpp, EAGLE, Medusa, Hydra, Gumiho, Spec-Bench, HASS, … .

    Logs that list every cycle become a cycle trace, all others acceptance counts by group.

    Example: gumiho traces import server.log -o counts.json; then gumiho traces show counts.json
    """
    from gumiho_simulator.importers import import_logs as read_logs
    from gumiho_theory.files import check_output

    check_output(output, files)
    result = {**read_logs(files, form).write(output).to_json(), "output": str(output)}
    rows = [(key, value) for key, value in result.items() if key != "warnings"]
    present(result, json, lambda: [quantities(rows), *warned(result["warnings"])])
