"""What `gumiho train` does: read the data, keep features if asked to, train with a progress bar, sum up."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gumiho_decoder.target import Target, check_device, load_target
from gumiho_decoder.training.config import TrainConfig
from gumiho_decoder.training.features import FeatureCache, data_fingerprint
from gumiho_decoder.training.folder import FEATURES, Result, check_free
from gumiho_decoder.training.texts.blocks import Order, TokenBlocks, split_blocks
from gumiho_decoder.training.texts.documents import Document, Report, read_documents
from gumiho_decoder.training.trainer import Blocks, Step, train
from gumiho_theory import InputError

_HELDOUT_ROWS = 8


@dataclass(frozen=True)
class Trained:
    """A finished training, and what it was trained on.

    Attributes
    ----------
    method : str
    result : Result
    blocks, heldout_blocks : int
        Blocks of tokens to train on, and held out.
    output : str
        The drafter's folder.
    data : dict
        What was read, and what was wrong with it.
    """

    method: str
    result: Result
    blocks: int
    heldout_blocks: int
    output: str
    data: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return what `gumiho train --json` prints."""
        counts = {"blocks": self.blocks, "heldout_blocks": self.heldout_blocks}
        return {"method": self.method, **asdict(self.result), **counts, "output": self.output, "data": self.data}


def train_drafter(
    target_name: str,
    method: str,
    data: Sequence[str],
    output: Path,
    *,
    resume: bool = False,
    overrides: Mapping[str, Any] | None = None,
    cache_features: bool = False,
    device: str = "cpu",
    dtype: str = "float32",
) -> Trained:
    """Train a drafter for a target; see `trainer.train`. Under a launcher every process calls this.

    Parameters
    ----------
    target_name : str
        As for `load_target`.
    method : str
        `gumiho`, `eagle`, `medusa`, `hydra` or `draft-model`.
    data : sequence of str
        Files as for `read_documents`; `sharegpt` (where no such file is) is the installed package's conversations.
    output : path
        The drafter's folder; `features` in it is the cache.
    overrides : mapping, optional
        Settings of `TrainConfig` that differ from the method's defaults; None changes nothing.
    cache_features : bool
        Keep the target's features of all blocks on disk, which pays when they are read more than once.
    device, dtype : str
        Of the target; the drafter is trained in float32, on the same device. `cuda` under a launcher is the process's.

    Raises
    ------
    InputError
        Anything that is wrong with the request, found before training as far as it can be.
    """
    asked = {name: value for name, value in (overrides or {}).items() if value is not None}
    if "method" in asked:
        raise InputError("--set", f"method={asked['method']}", "the method by --method")
    config = TrainConfig.of(method, **asked)
    if not data:
        raise InputError("training data", "no file", "at least one")
    if cache_features and method == "draft-model":
        raise InputError("feature cache", "method 'draft-model'", "a method that reads the target's features")
    check_free(output, resume=resume)
    rank, processes = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    say = _say if rank == 0 else _silent
    if device == "cuda" and processes > 1:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
    check_device(device, dtype)
    target = load_target(target_name, device, dtype)
    if "length" not in asked:
        config = TrainConfig.of(method, **asked, length=min(config.length, target.positions))
    report = Report()
    blocks, heldout = split_blocks(_documents(data, report), target.tokenizer, config.length, report)
    for line in report.lines():
        say(line)
    _check_tokens(target, blocks, heldout)
    config = config.over(len(blocks))
    order = Order(len(blocks), config.batch, config.seed)

    def batches(step: int) -> Blocks:
        return _tensors(blocks, order(step))

    features = None
    if cache_features:
        cache = _cached(target, blocks, output / FEATURES, rank, processes, say)

        def features(step: int, rows: slice) -> torch.Tensor:
            return cache.features(order(step)[rows])

    few = np.unique(np.linspace(0, len(heldout) - 1, _HELDOUT_ROWS).round().astype(int))
    facts = {
        "fingerprint": data_fingerprint(blocks.tokens, blocks.mask),
        "files": list(data),
        "blocks": len(blocks),
        "heldout_blocks": len(heldout),
        "report": report.to_json(),
    }
    with _bar(config.steps, shown=rank == 0) as progress:
        result = train(
            target,
            batches,
            _tensors(heldout, few),
            config,
            output,
            features=features,
            data=facts,
            resume=resume,
            progress=progress,
        )
    return Trained(method, result, len(blocks), len(heldout), str(output), report.to_json())


def _documents(data: Sequence[str], report: Report) -> Iterator[Document]:
    def of(name: str) -> Iterator[Document]:
        if name == "sharegpt" and not Path(name).exists():
            from gumiho_decoder.training.texts.sharegpt import sharegpt_documents

            return sharegpt_documents(report)
        return read_documents([name], report)

    return chain.from_iterable(map(of, data))


def _tensors(blocks: TokenBlocks, rows: np.ndarray) -> Blocks:
    return torch.from_numpy(blocks.tokens[rows].astype(np.int64)), torch.from_numpy(blocks.mask[rows])


def _check_tokens(target: Target, *sides: TokenBlocks) -> None:
    """Refuse ids that the target cannot read: a tokenizer may have more tokens than the model has rows."""
    rows = min(target.vocab_size, target.model.get_input_embeddings().weight.shape[0])
    largest = max(int(side.tokens.max()) for side in sides)
    if largest >= rows:
        found = f"token {largest} of its tokenizer"
        raise InputError(f"target {target.name!r}, vocabulary", found, f"tokens below {rows}, as the model has")


def _cached(
    target: Target, blocks: TokenBlocks, folder: Path, rank: int, processes: int, say: Callable[[str], None]
) -> FeatureCache:
    """Return the features of all blocks from disk, writing what is missing; as exact as the target gives them."""
    dtype = "bfloat16" if target.dtype == torch.bfloat16 else "float32"
    cache = FeatureCache(folder, target, blocks.tokens, blocks.mask, dtype)
    say(f"feature cache: {cache.bytes / 2**30:.2f} GiB ({dtype}) in {folder}" + (", complete" * cache.complete))
    with _progress(shown=rank == 0) as bar:
        task = bar.add_task("features", total=len(blocks))
        cache.make(lambda done: bar.update(task, completed=done), rank=rank, processes=processes)
    return cache


@contextmanager
def _bar(steps: int, *, shown: bool) -> Iterator[Callable[[Step], None]]:
    """Show a bar on stderr (only on a terminal); yields the function that moves it on."""
    with _progress(shown=shown) as bar:
        task = bar.add_task("training", total=steps)

        def update(step: Step) -> None:
            accuracy = " ".join("–" if a is None else f"{100 * a:.0f}" for a in step.heldout_accuracy or [])
            parts = [f"loss {step.loss:.3f}", *([f"held-out {accuracy} %"] if accuracy else [])]
            parts.append(f"{step.tokens_per_second:,.0f} tokens/s")
            bar.update(task, completed=step.step, description=", ".join(parts))

        yield update


def _progress(*, shown: bool) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (MofNCompleteColumn(), BarColumn(bar_width=8), TimeRemainingColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown)


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def _silent(message: str) -> None:
    pass
