"""`gumiho tree`: the best static tree by a log's rank rates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumiho_simulator.commands.shared.options import Json
from gumiho_simulator.commands.shared.output import present, quantities


def tree(
    file: Annotated[Path, typer.Argument(help="Cycle trace (Parquet) that logs ranks.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Static tree file to write (JSON).")],
    nodes: Annotated[int, typer.Option(min=2, max=4096, help="Nodes of the tree, root included.")] = 16,
    ranks: Annotated[int, typer.Option(min=1, max=512, help="Candidates a node may open.")] = 10,
    json: Json = False,
) -> None:
    """Build the static draft tree with the largest expected accepted length from a log's rank rates.

    Example: gumiho tree trace.parquet --nodes 16 -o tree.json; then gumiho decode --structure static:tree.json …
    """
    from gumiho_simulator.replaying import best_tree
    from gumiho_theory import Trace
    from gumiho_theory.files import check_output

    check_output(output, [file])
    best = best_tree(Trace.read(file), nodes, ranks)
    best.write(output, file)
    result = {**best.to_json(), "output": str(output)}
    present(result, json, lambda: [quantities(result)])
