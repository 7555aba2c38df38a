"""`gumiho train`: train a drafter for a frozen target."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gumiho_decoder.commands.options import Device, Dtype, Json, Target, print_json
from gumiho_theory import InputError


def train(
    method: Annotated[str, typer.Option(help="gumiho, eagle, medusa, hydra or draft-model.")],
    data: Annotated[list[str], typer.Option(help="Text, or chat as JSON lines; repeatable; sharegpt (extra `data`).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the drafter.")],
    target: Target = "tiny",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's last checkpoint.")] = False,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps (instead of epochs).")] = None,
    epochs: Annotated[float | None, typer.Option(help="Times that all data are read.")] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of a block.")] = None,
    batch: Annotated[int | None, typer.Option(help="Blocks of a step, over all processes.")] = None,
    rate: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, noise and order.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="Any other setting of TrainConfig, name=value; repeatable.")
    ] = None,
    cache_features: Annotated[
        bool, typer.Option("--cache-features", help="Keep the target's hidden states on disk.")
    ] = False,
    dtype: Dtype = "float32",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Train a drafter for a frozen target. Several processes: torchrun --nproc-per-node N -m gumiho_decoder train.

    Example: gumiho train --method eagle --data book.txt --steps 200 -o heads --set serial_layers=2
    """
    from gumiho_decoder.training import train_drafter

    named = {"steps": steps, "epochs": epochs, "length": length, "batch": batch, "rate": rate, "seed": seed}
    made = train_drafter(
        *(target, method, data, output),
        resume=resume,
        overrides=_with_settings({name: value for name, value in named.items() if value is not None}, setting or []),
        cache_features=cache_features,
        device=device,
        dtype=dtype,
    )
    if os.environ.get("RANK", "0") != "0":
        return
    if as_json:
        print_json(made.to_json())
        return
    from gumiho_simulator.reports.tables import show, table, text

    rows = [(name, text(value)) for name, value in made.to_json().items() if name != "data"]
    show(table(("quantity", "value"), rows), "held-out accuracy: share of the target's greedy choices, by position")


def _with_settings(named: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Add `name=value` settings to those that have an option of their own."""
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or name in named:
            raise InputError("--set", repr(text), "name=value, each name once")
        try:
            named[name] = json.loads(value)
        except ValueError:
            named[name] = value  # a word, as in optimizer=muon
    return named
