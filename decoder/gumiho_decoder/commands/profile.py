"""`gumiho profile`: measure what the steps of a cycle cost on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumiho_decoder.commands.options import Device, Dtype, Json, print_json
from gumiho_theory import CostProfile, InputError


def profile(
    output: Annotated[Path, typer.Option("--output", "-o", help="Cost profile to write (JSON).")],
    target: Annotated[str | None, typer.Option(help="Causal LM to time, as in `decode`.")] = None,
    drafter: Annotated[str | None, typer.Option(help="Drafter to time with it, as in `decode`.")] = None,
    shape: Annotated[
        str | None, typer.Option(help="Instead: random weights, vicuna-7b, llama2-13b, llama3-8b or a config.json.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="With --shape: gumiho, eagle, medusa or hydra.")] = None,
    context: Annotated[
        int | None, typer.Option(min=3, help="Tokens behind which the steps are timed; 128 if they fit.")
    ] = None,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Measure what the steps of a cycle cost here: plain step, verification by nodes, draft steps.

    Example: gumiho profile --target tiny --drafter tiny:gumiho -o profile.json
    """
    given = [name for name, value in (("--target", target), ("--shape", shape)) if value is not None]
    if len(given) != 1 or (method is not None) != (shape is not None) or (drafter is not None) != (target is not None):
        raise InputError("options", " and ".join(given) or "none", "--target and --drafter, or --shape and --method")
    from gumiho_decoder.measuring import profile_pair

    pair = (target, drafter) if shape is None else (f"random:{shape}", f"random:{method}")
    made = profile_pair(*pair, device=device, dtype=dtype, context=context, output=output)
    if as_json:
        print_json(made.to_json())
    else:
        _show(made)


def _show(made: CostProfile) -> None:
    from gumiho_simulator.reports.tables import show, table

    named = {
        "plain step": made.baseline_seconds,
        "any draft": made.draft_fixed_seconds,
        "each serial draft step": made.draft_serial_seconds,
        "parallel heads, once": made.draft_parallel_seconds,
        "rest of a cycle": made.other_seconds,
    }
    named |= {f"verification of {n} nodes": s for n, s in zip(made.verify_nodes, made.verify_seconds, strict=True)}
    rows = [(name, f"{1000 * seconds:.3f} ms") for name, seconds in named.items()]
    show(table(("step", "time (lower quartile)"), rows, f"{made.target}, {made.drafter}, {made.device}, {made.dtype}"))
