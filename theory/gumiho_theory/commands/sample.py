"""``gumiho theorem sample``: the theorem tried on random changes of rates."""

from __future__ import annotations

from typing import Annotated

import typer

from gumiho_theory.commands.printing import Json, Seed, show


def sample(
    depth: Annotated[int, typer.Option(min=2, help="Draft positions D.")] = 7,
    cases: Annotated[int, typer.Option(min=1, help="Random admissible cases.")] = 100_000,
    seed: Seed = 0,
    any_order: Annotated[bool, typer.Option("--any-order", help="Rates in any order: the hypothesis dropped.")] = False,
    json: Json = False,
) -> None:
    """Try the theorem on random admissible cases; every suspected loss is decided again in exact arithmetic.

    Example: gumiho theorem sample --depth 7 --cases 1000000 --seed 0
    """
    from gumiho_theory.theorem.montecarlo import sample_cases

    show(sample_cases(depth, cases, seed, any_order=any_order).to_json(), json)
