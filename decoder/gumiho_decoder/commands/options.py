"""Options that several commands share, and the one way to print JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

Target = Annotated[str, typer.Option(help="Causal LM: a folder, a hub id, or `tiny` (embedded).")]
Drafter = Annotated[
    str,
    typer.Option(
        help="A drafter's folder or hub id (own or published format), tiny:gumiho (or eagle, hydra, medusa, small), "
        "draft-model:T or ngram."
    ),
]
Structure = Annotated[
    str, typer.Option(help="chain:K, tree:total=64,top_k=14,depth=7,mlp_topk=35, static:FILE, or auto.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …; auto: layers spread over all devices.")]
Dtype = Annotated[str, typer.Option(help="float32, bfloat16 or float16.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object whose numbers are finite or null."""
    typer.echo(json.dumps(value, allow_nan=False))
