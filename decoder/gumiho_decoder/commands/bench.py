"""`gumiho bench`: measure many drafters and structures in turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gumiho_decoder.commands.options import Device, Dtype, Json, Limit, MaxNewTokens, Target, print_json
from gumiho_theory import InputError

STRUCTURES = ("chain:3", "chain:7", "tree:total=16,top_k=4,depth=7,mlp_topk=4")


def bench(
    prompts: Annotated[str, typer.Option(help="Prompt files, comma-separated; see `decode`.")],
    drafters: Annotated[str, typer.Option(help="Drafters, comma-separated; see `decode`.")],
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    target: Target = "tiny",
    structures: Annotated[
        list[str] | None,
        typer.Option(help="Structures, separated by spaces; chain:3, chain:7 and a tree of 16 nodes unless given."),
    ] = None,
    temperatures: Annotated[str, typer.Option(help="Comma-separated; 0: greedy.")] = "0",
    limit: Limit = None,
    max_new_tokens: MaxNewTokens = 128,
    first: Annotated[int, typer.Option(min=1, help="Also tau over cycles that start within N new tokens.")] = 32,
    repeats: Annotated[int, typer.Option(min=1, help="Times that each output is made and timed.")] = 1,
    seed: Annotated[int, typer.Option(help="Of the draws at temperatures above 0.")] = 0,
    calibrations: Annotated[
        Path | None,
        typer.Option(help="Folder of score calibrations, or `tiny`: trees with and without."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for a trace a row, and index.json.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in that folder.")] = False,
    report: Annotated[Path | None, typer.Option(help="Folder for rows.csv and figures.")] = None,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Measure drafters x structures x temperatures x prompt files, in turn with plain decoding and `generate`.

    Example: gumiho bench --drafters tiny:gumiho,ngram --prompts p.jsonl --structures chain:3 chain:7 -o bench

    Greedy outputs are compared with plain decoding: exit status 1 if one differs.
    """
    # Click gives an option one value; the further ones of `--structures A B C` arrive as arguments.
    if more and not structures:
        raise InputError("arguments", " ".join(more), "options only; structures follow --structures")
    asked = {
        "target": target,
        "drafters": _listed(drafters),
        "prompts": _listed(prompts),
        "structures": (*(structures or STRUCTURES), *(more or ())),
        "temperatures": _temperatures(temperatures),
    }
    from gumiho_decoder.measuring import BenchRequest, run_bench
    from gumiho_decoder.measuring.outputs import make_folder

    if report is not None:
        make_folder(report)
    result = run_bench(
        BenchRequest(
            **asked,
            limit=limit,
            max_new_tokens=max_new_tokens,
            first=first,
            repeats=repeats,
            seed=seed,
            calibrations=calibrations,
            output=output,
            resume=resume,
            dtype=dtype,
            device=device,
        )
    )
    if report is not None:
        from gumiho_simulator.reports import write_bench_report

        write_bench_report(report, result.rows)
    if as_json:
        print_json(result.to_json())
    else:
        from gumiho_simulator.reports import show_bench

        show_bench(result.rows)
    if result.different:
        raise typer.Exit(1)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _temperatures(text: str) -> tuple[float, ...]:
    values: Sequence[str] = _listed(text)
    try:
        made = tuple(float(value) for value in values)
    except ValueError:
        made = (math.nan,)
    if not all(math.isfinite(value) and value >= 0 for value in made):
        raise InputError("--temperatures", text, "numbers of at least 0, comma-separated")
    return made
