"""The tables that commands print for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.table import Column, Table


def text(value: Any, digits: int = 3) -> str:
    """Write a value for a table cell.

    `value`: None and nan become a dash, floats are rounded, a pair becomes an interval. `digits`: Digits after the
    point. Returns the cell.
    """
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(text(item, digits) for item in value) + "]"
    return str(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    """Make a table whose first column is a name and whose other columns are numbers.

    `columns`: Headings. `rows`: Values by row, written by `text`. `title`: Heading of the whole. Returns the table.
    """
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    heading = None if title is None else escape(title)
    made = Table(box=box.SIMPLE_HEAD, title=heading, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        made.add_column(escape(column.replace("_", " ")), justify="right" if index else "left", overflow="fold")
    for name, *values in rows:
        made.add_row(escape(_breakable(text(name))), *(escape(text(value)) for value in values))
    return made


def _breakable(name: str) -> str:
    """Let a structure's text be broken: between the settings of a tree, and without the folders of a static one."""
    kind, _, rest = name.partition(":")
    if kind == "static" and not rest.startswith("["):
        return f"static:{rest.rpartition('/')[2]}"
    return spaced(name) if kind in ("tree", "static") else name


def spaced(structure: str) -> str:
    """Put a space behind each comma of a structure's text, so that it can be broken there."""
    return re.sub(",(?! )", ", ", structure)


def show(*parts: Any) -> None:
    """Print tables and lines on standard output.

    `*parts`: Anything rich prints; text is taken literally. A table too wide for the terminal is printed row by row,
    one value a line: broken words are no better than no table.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for part in parts:
        if isinstance(part, Table) and _least_width(part) > console.width:
            for row in _by_row(part):
                console.print(row, markup=False)
            continue
        if isinstance(part, Table):
            _fold_between_words(part, console.width)
        console.print(part, markup=False)


def notes_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the rows' notes, each once behind the structures that it is about.

    `rows`: With keys structure and note; an empty note is none. Returns in order of first appearance.
    """
    structures: dict[str, list[str]] = {}
    for row in rows:
        if row["note"]:
            structures.setdefault(row["note"], []).append(row["structure"])
    return [f"{', '.join(named)}: {note}" for note, named in structures.items()]


def _least_width(made: Table) -> int:
    """Return the width below which words of a table break."""
    return sum(_longest_word(column) + 3 for column in made.columns) + 1


def _fold_between_words(made: Table, width: int) -> None:
    """Give the columns of a table that fits widths of whole words: room is taken where most can be spared."""
    least = [_longest_word(column) for column in made.columns]
    widths = [max(len(str(cell)) for cell in (column.header, *column.cells)) for column in made.columns]
    while sum(widths) + 3 * len(widths) + 1 > width:
        spare = [here - word for here, word in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    for column, here in zip(made.columns, widths, strict=True):
        column.width = here


def _longest_word(column: Column) -> int:
    return max(len(word) for cell in (column.header, *column.cells) for word in (str(cell).split() or [""]))


def _by_row(wide: Table) -> Iterator[Table]:
    """Turn a wide table into one of two columns for each of its rows."""
    from rich import box
    from rich.table import Table

    names = [str(column.header) for column in wide.columns]
    for values in zip(*(column.cells for column in wide.columns), strict=True):
        made = Table(box=box.SIMPLE_HEAD, title=wide.title, title_justify="left", title_style="bold")
        made.add_column(names[0], overflow="fold")
        made.add_column(values[0], justify="right", overflow="fold")
        for name, value in zip(names[1:], values[1:], strict=True):
            made.add_row(name, value)
        yield made
