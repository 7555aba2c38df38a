"""``gumiho theorem prove``: the theorem proved by machine, for every D and written out at small ones."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gumiho_theory.commands.printing import Json, print_json, print_table, text


def prove(
    max_depth: Annotated[int, typer.Option(min=2, help="Verify each D up to this one symbolically too.")] = 6,
    json: Json = False,
) -> None:
    """Prove the theorem with SymPy: the general obligations, then every D up to a depth.

    Exit status 1 when an obligation is not proved. With --json each one is exported, to be evaluated elsewhere.

    Example: gumiho theorem prove --max-depth 4
    """
    from gumiho_theory.theorem.proof.symbolic import prove as prove_theorem

    if sys.stderr.isatty():
        about = f"proving the general obligations and every D up to {max_depth}; D = 6 takes up to a minute"
        typer.echo(about, err=True)
    report = prove_theorem(max_depth)
    result = report.to_json()
    if json:
        print_json(result)
    else:
        rows = [(one["name"], one["relation"], text(one["proved"])) for one in result["obligations"]]
        print_table(("obligation", "relation", "proved"), rows)
        typer.echo(f"\nproved: {text(result['proved'])} ({len(rows)} obligations)")
    if not result["proved"]:
        raise typer.Exit(1)
