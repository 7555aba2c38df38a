"""The tables that commands print for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table


def text(value: Any, digits: int = 3) -> str:
    """Write a value for a table cell.

    Parameters
    ----------
    value
        None and nan become a dash, floats are rounded, a pair becomes an interval.
    digits
        Digits after the point.

    Returns
    -------
    str
        The cell.
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

    Parameters
    ----------
    columns
        Headings.
    rows
        Values by row, written by `text`.
    title
        Heading of the whole.

    Returns
    -------
    rich.table.Table
        The table.
    """
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    heading = None if title is None else escape(title)
    made = Table(box=box.SIMPLE_HEAD, title=heading, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        made.add_column(escape(column), justify="right" if index else "left", overflow="fold")
    for row in rows:
        made.add_row(*(escape(text(value)) for value in row))
    return made


def show(*parts: Any) -> None:
    """Print tables and lines on standard output.

    Parameters
    ----------
    *parts
        Anything rich prints; text is taken literally.
    """
    from rich.console import Console

    console = Console(highlight=False)
    for part in parts:
        console.print(part, markup=False)
