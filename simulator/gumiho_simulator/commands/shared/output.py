"""How commands show results: JSON or tables, warnings and progress on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from gumiho_theory.json_output import dumps

if TYPE_CHECKING:
    from rich.table import Table

TAU = "tau: bonus included, micro, over complete cycles"
RESAMPLED = "intervals 95 %, prompts resampled"


def present(result: Mapping[str, Any], as_json: bool, parts: Callable[[], Iterable[Any]]) -> None:
    """Print a result on standard output: as one JSON object, or as tables and lines for people.

    `result`: What JSON shows. `as_json`: Whether to. `parts`: Makes the tables and lines, where they are asked for.
    """
    if as_json:
        typer.echo(dumps(result))
        return
    from gumiho_simulator.reports.tables import show

    show(*parts())


def quantities(pairs: Mapping[str, Any] | Iterable[tuple[str, Any]], title: str | None = None) -> Table:
    """Make the table of named values that many commands show."""
    from gumiho_simulator.reports.tables import table

    return table(("quantity", "value"), pairs.items() if isinstance(pairs, Mapping) else pairs, title)


def warned(notes: Iterable[str]) -> list[str]:
    """Return warnings as the lines that stand below a table."""
    return [f"warning: {note}" for note in notes]


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print what a log warns of as lines on standard error, where a table or one JSON object is the result."""
    from gumiho_simulator.forecasting.summary import LogWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LogWarning)
        yield
    for one in caught:
        if issubclass(one.category, LogWarning):
            print(f"warning: {one.message}", file=sys.stderr)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@contextmanager
def progress_bar(doing: str, steps: int | None) -> Iterator[Callable[..., None]]:
    """Show a bar on standard error, on a terminal only; what it yields takes rich's settings of a task."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(doing, total=steps))
