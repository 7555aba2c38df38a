"""What the benchmarks share: the prompts that nothing was trained or fitted on, and folders of trained drafters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import torch
import typer

from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.embedded import embedded
from gumiho_decoder.measuring.prompts import read_prompts, spread
from gumiho_decoder.target import Target, load_target
from gumiho_decoder.tiny.making.family import FAMILY

MEASURED = Path(__file__).parent / "prompts" / "measured.jsonl"
Prompts = Annotated[Path, typer.Option(help="JSON lines.")]
Limit = Annotated[int | None, typer.Option(help="Texts, spread evenly over the file.")]
Drafters = Annotated[Path, typer.Argument(metavar="DRAFTERS", help="Folder of drafters, or tiny.")]
Names = Annotated[str, typer.Option(help="Comma-separated; all unless given.")]


def read_tokens(target: Target, prompts: Path, limit: int | None) -> list[list[int]]:
    """Return the tokens of prompts, spread evenly over their file."""
    return [target.encode(prompt.turns[0]) for prompt in spread(read_prompts(str(prompts)), limit)]


def on_threads(threads: int) -> Target:
    """Return the embedded target, on so many threads."""
    torch.set_num_threads(threads)
    return load_target("tiny")


def to_do(
    target: Target, folder: Path, names: str, output: Path, suffix: str = ".parquet"
) -> Iterator[tuple[Path, TreeDrafter]]:
    """Yield the drafters of a folder whose file in `output` is not there yet, with its path.

    They are called by their allocation alone, whatever the steps of their training.
    """
    output.mkdir(parents=True, exist_ok=True)
    own = str(folder) == "tiny"
    wanted = sorted(FAMILY) if own else sorted(path.name for path in folder.iterdir() if path.is_dir())
    for name in names.split(",") if names else wanted:
        shown = name if name.startswith("step-") else name.partition("-")[0]
        if (path := output / f"{shown}{suffix}").exists():
            continue
        place = embedded(name) if own else folder / name
        draft_model = (place / "tokenizer.json").exists()
        drafter = load_drafter(f"draft-model:{place}" if draft_model else str(place), target)
        drafter.name = f"tiny:{shown}" if own else shown  # a folder's path is nobody else's business
        yield path, drafter
