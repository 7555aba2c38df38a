"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the resampling.")]
LogFile = Annotated[Path, typer.Argument(help="Cycle trace, counts, or a log that `traces import` reads.")]
More = Annotated[list[str] | None, typer.Argument(hidden=True)]
"""Click gives an option one value; the further ones of ``--structures A B C`` arrive as arguments."""
