"""`gumiho roofline`: a cost profile estimated from a model's shape and an accelerator's data sheet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json
from gumiho_simulator.commands.shared.output import present

if TYPE_CHECKING:
    from gumiho_simulator.costs import Estimate


def roofline(
    shape: Annotated[str, typer.Option(help="Target: vicuna-7b, llama3-8b, … or a config.json.")],
    method: Annotated[str, typer.Option(help="gumiho, eagle, medusa, hydra or draft-model.")],
    accelerator: Annotated[str, typer.Option(help="MI250, A100, H100, H200 or RTX 4090.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Cost profile to write (JSON).")],
    batch: Annotated[int, typer.Option(help="Sequences decoded together.")] = 1,
    context: Annotated[int, typer.Option(help="Tokens of each before the step.")] = 512,
    weight_bytes: Annotated[float, typer.Option(help="Bytes of a weight: 2 for 16 bits, 0.5 for 4.")] = 2.0,
    draft_shape: Annotated[str | None, typer.Option(help="The smaller model, for draft-model.")] = None,
    serial_steps: Annotated[int, typer.Option(help="Gumiho: serial steps.")] = 2,
    serial_layers: Annotated[int, typer.Option(help="Gumiho: layers of a serial step.")] = 2,
    parallel_heads: Annotated[int, typer.Option(help="Gumiho: parallel heads.")] = 5,
    heads: Annotated[int, typer.Option(help="Medusa and Hydra: heads.")] = 5,
    json: Json = False,
) -> None:
    """Estimate a cost profile from a model's shape and an accelerator's data sheet, without running anything.

    Example: gumiho roofline --shape vicuna-7b --method gumiho --accelerator H100 -o profile.json
    """
    from gumiho_simulator.costs import estimate_profile
    from gumiho_theory.files import check_output

    check_output(output, [name for name in (shape, draft_shape) if name is not None and os.path.isfile(name)])
    made = estimate_profile(
        shape,
        method,
        accelerator,
        batch=batch,
        context=context,
        weight_bytes=weight_bytes,
        draft_shape=draft_shape,
        serial_steps=serial_steps,
        serial_layers=serial_layers,
        parallel_heads=parallel_heads,
        heads=heads,
    )
    made.profile.write(output)
    present({**made.to_json(), "output": str(output)}, json, lambda: _tables(made, output))


def _tables(made: Estimate, output: Path) -> list[Any]:
    from gumiho_simulator.reports.tables import table

    profile = made.profile
    steps = {
        "plain step": profile.baseline_seconds,
        "serial draft step": profile.draft_serial_seconds,
        "parallel heads, once": profile.draft_parallel_seconds,
        "rest": profile.other_seconds,
    }
    sizes = zip(profile.verify_nodes, profile.verify_seconds, strict=True)
    steps |= {f"verification of {nodes} nodes": seconds for nodes, seconds in sizes}
    rows = [(step, 1000 * seconds) for step, seconds in steps.items()]
    title = f"{profile.target}, {profile.drafter}, {profile.device}"
    return [table(("step", "ms, estimated"), rows, title), f"rates: {made.source}", str(output)]
