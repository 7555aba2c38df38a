"""``gumiho theorem counterexample``: a change of rates in any order that loses."""

from __future__ import annotations

from typing import Annotated

import typer

from gumiho_theory.commands.printing import Json, Seed, show


def counterexample(
    depth: Annotated[int, typer.Option(min=1, help="Draft positions D.")] = 3,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Search for a change that loses when the rates may stand in any order.

    Exit status 1 when there is none: for D up to 2 none exists, which is proved.

    Example: gumiho theorem counterexample --depth 3 --seed 0
    """
    from gumiho_theory.theorem.boundary import counterexample as search

    found = search(depth, seed)
    nothing = {"found": False, "original": None, "improved": None, "early": None, "gain": None}
    show(nothing if found is None else found.to_json(), json)
    if found is None:
        raise typer.Exit(1)
