"""The training loop of the embedded target, and the optimizers of every training: what is learnt is the caller's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from gumiho_decoder.training.muon import Muon


@dataclass(frozen=True)
class LoopConfig:
    """How long and how fast.

    Attributes
    ----------
    steps : int
        Optimizer steps in all.
    warmup : int
        Steps of linear warm-up; after it the learning rate falls linearly to 0 at `steps`.
    clip : float
        Largest gradient norm.
    checkpoint_every : int
        Steps between checkpoints.
    """

    steps: int
    warmup: int = 20
    clip: float = 1.0
    checkpoint_every: int = 50

    def rate(self, step: int) -> float:
        """Return the factor on every learning rate at `step` (0-based)."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        return (self.steps - step) / (self.steps - self.warmup)


Log = Callable[[int, float, float], None]


def run_loop(
    config: LoopConfig,
    model: nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    batch_loss: Callable[[int], torch.Tensor],
    checkpoint: Path,
    log: Log,
    *,
    resume: bool,
) -> float:
    """Train `model` in place; `batch_loss(step)` returns the scalar loss of a step's batch.

    A resumed run takes up weights, optimizer state and step, so it ends where an uninterrupted one would; randomness
    inside `batch_loss` must depend on the step alone.

    Returns seconds trained in all, over every session.
    """
    rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
    step, seconds = 0, 0.0
    if resume and checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True, map_location=next(model.parameters()).device)
        model.load_state_dict(state["model"])
        for optimizer, saved in zip(optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        step, seconds = state["step"], state["seconds"]
    started = time.perf_counter() - seconds
    while step < config.steps:
        for optimizer, bases in zip(optimizers, rates, strict=True):
            for group, base in zip(optimizer.param_groups, bases, strict=True):
                group["lr"] = base * config.rate(step)
        loss = batch_loss(step)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        log(step, float(loss.detach()), time.perf_counter() - started)
        if step % config.checkpoint_every == 0 or step == config.steps:
            _save(checkpoint, model, optimizers, step, time.perf_counter() - started)
    return time.perf_counter() - started


def _save(path: Path, model: nn.Module, optimizers: Sequence[torch.optim.Optimizer], step: int, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "model": model.state_dict(),
        "optimizers": [o.state_dict() for o in optimizers],
        "step": step,
        "seconds": seconds,
    }
    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def split_optimizers(
    model: nn.Module, muon_rate: float, adam_rate: float, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """Muon for the hidden matrices, AdamW for embeddings, gains and biases.

    Muon (momentum orthogonalised by Newton-Schulz) needs markedly fewer tokens than AdamW at this size; both take
    learning rates of the same scale.
    """
    trained = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    matrices = [p for n, p in trained if p.ndim == 2 and "embed" not in n]
    chosen = {id(p) for p in matrices}
    rest = [p for _, p in trained if id(p) not in chosen]
    return [
        Muon(matrices, lr=muon_rate, weight_decay=weight_decay),
        torch.optim.AdamW(rest, lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]
