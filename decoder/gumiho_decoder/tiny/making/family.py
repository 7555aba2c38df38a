"""The tiny family: what each drafter is trained with, and on which rows. All see the same rows in the same order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gumiho_decoder.target import Target, load_target
from gumiho_decoder.tiny.making.stream import Blocks, evenly
from gumiho_decoder.training.config import EQUAL_HEADS, TrainConfig
from gumiho_decoder.training.features import FeatureCache, data_fingerprint
from gumiho_decoder.training.folder import Result
from gumiho_decoder.training.texts.blocks import TokenBlocks
from gumiho_decoder.training.texts.continuations import continue_texts
from gumiho_decoder.training.trainer import Step, train

LENGTH = 256  # tokens of a row
BATCH = 8  # rows of a step
STEPS = 768
PROMPT = 64  # tokens of a continued row that are the corpus's
HELDOUT_ROWS = 32

_MUON = dict(optimizer="muon", muon_rate=8e-3, rate=3e-3)
# The parallel heads' softmaxes over the vocabulary cost more than everything else; a share of the places, drawn anew
# at each step, buys more text for the same time.
_HYBRID: dict[str, Any] = dict(
    method="gumiho", serial_steps=2, serial_layers=2, parallel_heads=5, head_blocks=3, head_share=0.25, **_MUON
)

FAMILY: dict[str, dict[str, Any]] = {
    # The heads' losses leave the serial part alone.
    "gumiho": _HYBRID | dict(detach_heads=True) | EQUAL_HEADS,
    "eagle": dict(method="eagle", **_MUON),
    "medusa": dict(method="medusa", heads=3, rate=2e-3),
    "hydra": dict(method="hydra", heads=3, layers=1, prefix=False, rate=2e-3),
    "small": dict(method="draft-model", hidden_size=128, layers=2, **_MUON),
}
"""The embedded drafters. Few heads with vocabulary matrices of their own, since those are most of the weights."""


def _allocations() -> Iterator[tuple[str, dict[str, Any]]]:
    for serial in range(1, 8):
        yield f"serial{serial}", dict(serial_steps=serial, parallel_heads=7 - serial)
    for layers in (1, 3):
        yield f"layers{layers}", dict(serial_layers=layers)
    for blocks in (1, 6):
        yield f"blocks{blocks}", dict(head_blocks=blocks)
    for positions in (3, 5, 9):
        yield f"positions{positions}", dict(parallel_heads=positions - 2)


def _sweep() -> Iterator[tuple[str, dict[str, Any]]]:
    yield from _allocations()
    for name, changes in _allocations():
        if changes.get("parallel_heads") != 0:  # without heads there is nothing to weigh or to keep apart
            yield f"equal{name.removeprefix('serial')}", changes | EQUAL_HEADS
            yield f"apart{name.removeprefix('serial')}", changes | dict(detach_heads=True) | EQUAL_HEADS
    yield "own2", dict(head_input="own")
    yield "ownequal2", dict(head_input="own") | EQUAL_HEADS
    yield "deep7", dict(serial_steps=7, parallel_heads=0, serial_layers=3)
    adamw = dict(optimizer="adamw", muon_rate=None, rate=2e-3)
    yield "adamw2", adamw | EQUAL_HEADS
    yield "adamwapart2", adamw | dict(detach_heads=True) | EQUAL_HEADS


SWEEP: dict[str, dict[str, Any]] = {name: _HYBRID | changes for name, changes in _sweep()}
"""Head allocations, trained as released: 1 to 7 serial ones of 7 positions; around 2 of 7, other depths and numbers of
heads. `equal`: heads weigh as much as the serial part; `apart`: their losses leave it alone; `own`: they have an input
layer of their own. `deep`: no heads, three layers. `adamw`: is it the optimizer's doing?"""


def make_rows(name: str, device: str, stream: NDArray[np.uint16], steps: int, seed: int) -> TokenBlocks:
    """Return the rows of `steps` steps for the target of that name.

    In each step half are text, a quarter the target's own greedy continuations of text, and a quarter its continuations
    at temperature 1; a process writes each, on its share of the threads. What follows an end token does not count.
    """
    count = steps * BATCH
    texts, starts = Blocks(stream, LENGTH, count // 2, seed), Blocks(stream, PROMPT, count // 2, seed + 1)
    prompts = starts(0).tolist()
    rows = [[row] for row in texts(0).tolist()]
    threads = max(1, torch.get_num_threads() // 2)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        of_each = [
            pool.submit(_continued, name, device, threads, part, temperature, seed)
            for part, temperature in ((prompts[::2], 0.0), (prompts[1::2], 1.0))
        ]
        written = [future.result() for future in of_each]
    tokens = np.zeros((count, LENGTH), dtype=np.uint32)
    mask = np.zeros((count, LENGTH), dtype=bool)
    own = itertools.chain.from_iterable(zip(*written, strict=True))
    for index in range(count):
        # Text and own continuations take turns, so that each step has as many of either.
        row = rows[index // 2][0] if index % 2 == 0 else [*prompts[index // 2], *next(own)]
        tokens[index, : len(row)], mask[index, : len(row)] = row, True
    return TokenBlocks(tokens, mask)


def _continued(
    name: str, device: str, threads: int, prompts: list[list[int]], temperature: float, seed: int
) -> list[list[int]]:
    torch.set_num_threads(threads)
    target = load_target(name, device)
    new_tokens = LENGTH - PROMPT
    return list(continue_texts(target, prompts, new_tokens=new_tokens, temperature=temperature, seed=seed, batch=64))


def train_one(
    target: Target,
    rows: TokenBlocks,
    features: FeatureCache | None,
    heldout: NDArray[np.uint16],
    settings: dict[str, Any],
    folder: Path,
    *,
    steps: int = STEPS,
    start: Path | None = None,
    keep_at: tuple[int, ...] = (),
    resume: bool = False,
    progress: Callable[[Step], None] | None = None,
) -> Result:
    """Train one drafter on the rows, in order, over and over if need be, and write it to a folder.

    Without `features` the target computes them anew.
    """
    config = TrainConfig.of(
        **settings,
        steps=steps,
        length=LENGTH,
        batch=BATCH,
        schedule="linear",
        mixed_precision="bf16",
        checkpoint_every=100,
        eval_every=steps,
    )

    def of_step(step: int) -> NDArray[np.int64]:
        return np.arange(step * BATCH, (step + 1) * BATCH) % len(rows)

    def batches(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = of_step(step)
        return torch.from_numpy(rows.tokens[chosen].astype(np.int64)), torch.from_numpy(rows.mask[chosen])

    few = evenly(heldout, LENGTH, HELDOUT_ROWS)
    kept = features is not None and config.method != "draft-model"
    return train(
        target,
        batches,
        (few, torch.ones_like(few, dtype=torch.bool)),
        config,
        folder,
        features=(lambda step, of: features.features(of_step(step)[of])) if kept else None,
        data={"fingerprint": data_fingerprint(rows.tokens, rows.mask)},
        start=start,
        keep_at=keep_at,
        resume=resume,
        progress=progress,
    )
