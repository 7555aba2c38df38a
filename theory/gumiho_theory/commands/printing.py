"""How the commands print: one JSON object, or tables as wide as the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]

# Headings of tables that have to fit into 80 columns.
_SHORT = {
    "next_rate": "next",
    "next_worth": "next",
    "falls_probability": "prob.",
    "earlier_worth_more": "earlier more",
    "earlier_worth_more_probability": "prob.",
}


def show(result: Mapping[str, Any], json: bool) -> None:
    """Print a result as JSON, or as a table of names and values, with a table of its own for every list of rows."""
    if json:
        print_json(result)
        return
    flat: list[tuple[str, str]] = []
    tables: list[tuple[str, list[Mapping[str, Any]]]] = []
    for name, value in result.items():
        if isinstance(value, Mapping):
            flat += [(f"{name}, {key}", text(item)) for key, item in value.items()]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            tables.append((name, value))
        elif isinstance(value, list) and value and isinstance(value[0], str):
            flat += [("" if place else name, line) for place, line in enumerate(value)]
        else:
            flat.append((name, text(value)))
    print_table(("quantity", "value"), flat)
    for name, rows in tables:
        typer.echo(f"\n{name}")
        # A list within a row is for --json.
        keys = [key for key, value in rows[0].items() if not isinstance(value, list)]
        print_table([_SHORT.get(key, key) for key in keys], [[text(row[key], 4) for key in keys] for row in rows])


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    from gumiho_theory.files import dumps_json

    typer.echo(dumps_json("result", result))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns that are as wide as their longest cell; the last one is wrapped."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    # The last column may be long text: it goes on below itself.
    room = max(shutil.get_terminal_size().columns - before, 20)
    for line in lines:
        texts = textwrap.wrap(line[-1], room, break_long_words=False, break_on_hyphens=False) or [""]
        cells = [cell.ljust(width) for cell, width in zip(line[:-1], widths[:-1], strict=True)]
        typer.echo("  ".join([*cells, texts[0]]).rstrip())
        for more in texts[1:]:
            typer.echo(" " * before + more)


def text(value: Any, digits: int = 6) -> str:
    """Return a JSON value as a table shows it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, list):
        return ", ".join(map(text, value)) or "none"
    return str(value)
