"""The state of a training run: weights, optimizers, how far they have come; and one step of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.target import Target
from gumiho_decoder.training.config import TrainConfig
from gumiho_decoder.training.features import read_features
from gumiho_decoder.training.folder import Result, RunFolder
from gumiho_decoder.training.loop import split_optimizers
from gumiho_decoder.training.methods import Learner, heldout_accuracy, new_model
from gumiho_theory import InputError

Blocks = tuple[torch.Tensor, torch.Tensor]
"""Tokens, int64 (n, length), and which of them count, bool (n, length)."""
Batches = Callable[[int], Blocks]
Features = Callable[[int, slice], torch.Tensor]
_LAST_LOSSES = 50


@dataclass(frozen=True)
class Step:
    """What is known after a step.

    Attributes
    ----------
    step, steps : int
        Steps done, of how many.
    loss : float
        Of this step.
    tokens_per_second : float
        Of this session.
    heldout_accuracy : list of float or None, or None
        Last measured, per draft position; None: not yet.
    """

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    heldout_accuracy: Sequence[float | None] | None


class Session:
    """The weights, their optimizers, and how far they have come."""

    def __init__(
        self,
        target: Target,
        batches: Batches,
        heldout: Blocks | None,
        config: TrainConfig,
        run: RunFolder,
        accelerator: Any,
        features: Features | None,
        start: Path | None = None,
    ) -> None:
        self._target, self._batches, self._heldout, self._config = target, batches, heldout, config
        self._run, self._accelerator, self._features = run, accelerator, features
        self.model = new_model(target, config, start)
        optimizers = _optimizers(self.model, config)
        self._rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
        learner = Learner(target, self.model, config)
        self._learner, *self._optimizers = accelerator.prepare(learner, *optimizers)
        self.step, self._before = 0, 0.0
        self._losses: deque[float] = deque(maxlen=_LAST_LOSSES)
        self._accuracy: list[float | None] | None = None
        self._measured = False
        self._started, self._from = time.perf_counter(), 0

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Take up a checkpoint."""
        if state is not None:
            try:
                self.model.load_state_dict(state["model"])
                for optimizer, saved in zip(self._optimizers, state["optimizers"], strict=True):
                    optimizer.load_state_dict(saved)
                if self._accelerator.scaler is not None:
                    self._accelerator.scaler.load_state_dict(state["scaler"])
                self.step, self._before = int(state["step"]), float(state["seconds"])
                self._losses.extend(state["losses"])
            except (KeyError, RuntimeError, TypeError, ValueError) as error:
                raise InputError(str(self._run.checkpoint), error, "the state of these weights") from error
        self._started, self._from = time.perf_counter(), self.step

    @property
    def seconds(self) -> float:
        """Trained so far, over every session."""
        return self._before + time.perf_counter() - self._started

    def advance(self) -> Step:
        """Take one step; measure if it is time to."""
        config, accelerator = self._config, self._accelerator
        tokens, mask = self._batches(self.step)
        wanted = (config.batch, config.length)
        if tuple(tokens.shape) != wanted or tuple(mask.shape) != wanted or mask.dtype != torch.bool:
            found = f"tokens {tuple(tokens.shape)}, mask {tuple(mask.shape)} {mask.dtype}"
            raise InputError(f"batch of step {self.step}", found, f"both {wanted}, the mask bool")
        for optimizer, bases in zip(self._optimizers, self._rates, strict=True):
            for group, base in zip(optimizer.param_groups, bases, strict=True):
                group["lr"] = base * config.rate_at(self.step)
        # Gradients are averaged over processes and divided by the parts; each part's loss is its share of one sum.
        parts, processes = config.gradient_accumulation, accelerator.num_processes
        rows = config.batch // (parts * processes)
        loss = torch.zeros((), device=self._target.head_device)
        for part in range(parts):
            first = (accelerator.process_index * parts + part) * rows
            of_part = slice(first, first + rows)
            with accelerator.accumulate(self._learner):
                read = self._read(tokens[of_part], of_part)
                share = self._learner(tokens[of_part], mask[of_part], read, mask, self.step, first)
                accelerator.backward(share * (parts * processes))
            loss += share.detach()
        norm = accelerator.clip_grad_norm_(self.model.parameters(), config.clip)
        loss, norm = torch.stack([accelerator.reduce(loss, "sum"), norm.to(loss)]).tolist()
        self._check_finite(loss, norm)
        for optimizer in self._optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        self._losses.append(loss)
        self._measured = accelerator.is_main_process and self.step % config.eval_every == 0
        if self._measured:
            self._accuracy = self._measure()
        seconds = time.perf_counter() - self._started
        speed = (self.step - self._from) * config.batch * config.length / seconds
        return Step(self.step, config.steps, loss, speed, self._accuracy)

    def line(self, done: Step) -> dict[str, Any]:
        """Return a step's line of the curve."""
        line = {"step": done.step, "loss": done.loss, "tokens_per_second": round(done.tokens_per_second, 1)}
        return line | ({"heldout_accuracy": done.heldout_accuracy} if self._measured else {})

    def any_process(self, noted: bool) -> bool:
        """Return whether it is so in any process: all of them have to stop at the same step."""
        flag = torch.tensor(float(noted), device=self._target.head_device)
        return bool(self._accelerator.reduce(flag, "sum") > 0)

    def save(self) -> None:
        """Write a checkpoint, from the first process."""
        if self._accelerator.is_main_process:
            scaler = self._accelerator.scaler
            self._run.save(
                {
                    "model": self.model.state_dict(),
                    "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
                    "scaler": None if scaler is None else scaler.state_dict(),
                    "step": self.step,
                    "seconds": self.seconds,
                    "losses": list(self._losses),
                }
            )

    def result(self) -> Result:
        """Measure the final weights and return what the run comes to."""
        accuracy = self._accuracy if self._measured else self._measure()
        tokens = self._config.steps * self._config.batch * self._config.length
        loss = sum(self._losses) / len(self._losses)
        return Result(self._config.steps, tokens, loss, accuracy, round(self.seconds, 3))

    def _read(self, tokens: torch.Tensor, rows: slice) -> torch.Tensor | None:
        if self._config.method == "draft-model":
            return None
        return read_features(self._target, tokens) if self._features is None else self._features(self.step, rows)

    def _measure(self) -> list[float | None]:
        if self._heldout is None:
            return []
        return heldout_accuracy(self._target, self.model, self._config, *self._heldout)

    def _check_finite(self, loss: float, norm: float) -> None:
        """Refuse to train on with weights that one more step would spoil; in fp16 steps are skipped instead."""
        right = torch.tensor([loss] if self._accelerator.scaler is not None else [loss, norm]).isfinite().all()
        if not right:
            wanted = f"finite numbers (a rate below {self._config.rate:g} may give them)"
            raise InputError(f"training, step {self.step}", f"loss {loss}, gradient norm {norm}", wanted)


def _optimizers(model: torch.nn.Module, config: TrainConfig) -> list[torch.optim.Optimizer]:
    if config.optimizer == "muon":
        muon, adam = split_optimizers(model, config.muon_rate, config.rate, config.weight_decay)
        adam.param_groups[0]["betas"] = config.betas
        return [muon, adam]
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [torch.optim.AdamW(weights, lr=config.rate, betas=config.betas, weight_decay=config.weight_decay)]


def accelerator_for(config: TrainConfig, target: Target) -> Any:
    """Return the Accelerator of a run, in one process or several.

    Raises InputError: fp16 on a CPU, a launcher that splits models, or a target that is not on this process's device.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import DistributedType, GradientAccumulationPlugin

    cpu = target.head_device.type == "cpu"
    if cpu and config.mixed_precision == "fp16":
        raise InputError("training, mixed_precision", "'fp16' on a cpu", "'bf16' or 'no', or an accelerator")

    def make() -> Any:
        plugin = GradientAccumulationPlugin(config.gradient_accumulation, sync_with_dataloader=False)
        return Accelerator(
            device_placement=False,  # the target is where it is, and the drafter with it
            mixed_precision=config.mixed_precision,
            cpu=cpu,
            gradient_accumulation_plugin=plugin,
        )

    try:
        made = make()
    except ValueError:
        made = None
    if made is None or made.device.type != target.head_device.type:
        # A process's first Accelerator settles device and precision for all later ones; this run has its own.
        AcceleratorState._reset_state(reset_partial_state=AcceleratorState().num_processes == 1)
        made = make()
    kinds = (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU)
    if made.distributed_type not in kinds:
        raise InputError("launcher", made.distributed_type.value, "plain data-parallel processes, on CPUs or GPUs")
    if made.distributed_type == DistributedType.MULTI_GPU and target.head_device != made.device:
        raise InputError("target, device", target.head_device, f"{made.device}, as process {made.process_index} has")
    return made
