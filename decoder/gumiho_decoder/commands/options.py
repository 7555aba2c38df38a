"""Options that several commands share, and how each command prints its JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from gumiho_theory.json_output import plain

Target = Annotated[str, typer.Option(help="Causal LM: a folder, a hub id, or `tiny` (embedded).")]
Drafter = Annotated[
    str,
    typer.Option(
        help="A drafter's folder or hub id (own or published format), tiny:gumiho (or eagle, hydra, medusa, small), "
        "draft-model:T or ngram."
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N prompts of a file.")]
MaxNewTokens = Annotated[int, typer.Option(min=1, help="Most tokens of an output.")]
Dtype = Annotated[str, typer.Option(help="Of the target: float32, bfloat16 or float16.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …; auto: layers spread over all devices.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def print_json(value: Any) -> None:
    """Print one JSON object on stdout, in ASCII: a terminal of any encoding leaves it whole."""
    typer.echo(json.dumps(plain(value), allow_nan=False))
