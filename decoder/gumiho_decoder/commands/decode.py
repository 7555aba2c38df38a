"""`gumiho decode`: decode prompts speculatively, log every cycle, check that nothing changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_decoder.commands.options import Device, Drafter, Dtype, Json, Limit, MaxNewTokens, Target, print_json

if TYPE_CHECKING:
    from gumiho_decoder.measuring import DecodeResult


def decode(
    prompts: Annotated[str, typer.Option(help="JSON lines with `prompt` or `turns`; - is stdin.")],
    target: Target = "tiny",
    drafter: Drafter = "tiny:gumiho",
    limit: Limit = None,
    max_new_tokens: MaxNewTokens = 128,
    temperature: Annotated[float, typer.Option(help="0: greedy.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(help="Sample among the k most probable tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample among the fewest tokens of this probability.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same output.")] = 0,
    structure: Annotated[
        str, typer.Option(help="chain:K, tree:total=64,top_k=14,depth=7,mlp_topk=35, static:FILE, or auto.")
    ] = "chain:7",
    candidates: Annotated[str, typer.Option(help="top: most probable draft tokens; sampled: drawn.")] = "top",
    acceptance: Annotated[str, typer.Option(help="exact; typical: Medusa's rule, LOSSY.")] = "exact",
    fta: Annotated[str, typer.Option(help="Full tree attention: off; released or literal, LOSSY.")] = "off",
    calibration: Annotated[
        Path | None, typer.Option(help="Score calibration of this drafter: JSON, or tiny:gumiho, …")
    ] = None,
    budget: Annotated[Path | None, typer.Option(help="Cost profile: trees as large as pays for itself.")] = None,
    stop_string: Annotated[list[str] | None, typer.Option(help="End an output with this text; repeatable.")] = None,
    stop_token: Annotated[list[int] | None, typer.Option(help="End an output with this id; repeatable.")] = None,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the cycle trace here (Parquet).")] = None,
    every_position: Annotated[Path | None, typer.Option(help="Write the every-position log here (Parquet).")] = None,
    log_structure: Annotated[
        list[str] | None, typer.Option(help="Structure whose accepted lengths that log holds; repeatable.")
    ] = None,
    log_top_k: Annotated[int, typer.Option(min=1, max=512, help="Draft candidates a depth in that log.")] = 10,
    check_lossless: Annotated[
        bool, typer.Option("--check-lossless", help="Compare with plain decoding, and time it.")
    ] = False,
    baseline: Annotated[bool, typer.Option("--baseline", help="Time plain decoding too.")] = False,
    outputs: Annotated[bool, typer.Option("--outputs", help="Show what was written.")] = False,
    as_json: Json = False,
) -> None:
    """Decode prompts speculatively, log every cycle, and check that nothing changed.

    Examples: gumiho decode --prompts p.jsonl --structure chain:5 --check-lossless -o trace.parquet

    gumiho decode --prompts p.jsonl --structure tree:total=32,top_k=8,depth=7,mlp_topk=8 --outputs
    """
    from gumiho_decoder.config import GenerationConfig
    from gumiho_decoder.embedded import calibration_path
    from gumiho_decoder.measuring import DecodeRequest, decode_prompts
    from gumiho_theory import CostProfile, ScoreCalibration, Structure

    generation = GenerationConfig(
        max_new_tokens=max_new_tokens,
        structure=Structure.parse(structure),
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        candidates=candidates,
        acceptance=acceptance,
        fta=fta,
        calibration=None if calibration is None else ScoreCalibration.read(calibration_path(calibration)),
        budget=None if budget is None else CostProfile.read(budget),
        stop_token_ids=tuple(stop_token or ()),
        stop_strings=tuple(stop_string or ()),
    )
    result = decode_prompts(
        DecodeRequest(
            prompts=prompts,
            target=target,
            drafter=drafter,
            limit=limit,
            dtype=dtype,
            device=device,
            generation=generation,
            trace=output,
            every_position=every_position,
            log_structures=tuple(Structure.parse(text) for text in log_structure or ()),
            log_top_k=log_top_k,
            check=check_lossless,
            baseline=baseline,
        )
    )
    if as_json:
        print_json(result.to_json(outputs=outputs))
    else:
        _show(result, outputs=outputs)
    if result.different:
        raise typer.Exit(1)


def _show(result: DecodeResult, *, outputs: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("quantity", "value", show_edge=False)
    for name, value in result.summary.items():
        if value is not None and value != []:
            table.add_row(name.replace("_", " "), _shown(value))
    console.print(table)
    for made in result.outputs if outputs else []:
        console.rule(escape(f"{made.prompt_id}, turn {made.turn} ({made.speculative.stop_reason})"))
        typer.echo(made.text)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items()) if value.get("checked", 1) else "not checked"
    if isinstance(value, list) and value and isinstance(value[0], float):
        return f"{value[0]:.3g} to {value[1]:.3g}"
    if isinstance(value, list):
        return "; ".join(", ".join(f"{k} {_shown(v)}" for k, v in row.items()) for row in value) or "none"
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)
