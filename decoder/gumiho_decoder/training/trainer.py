"""Training a drafter on a frozen target: in one process or several, resumable to the same weights."""

from __future__ import annotations

import hashlib
import signal
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from gumiho_decoder.drafters.files.fingerprint import fingerprint
from gumiho_decoder.logging.recorder import environment
from gumiho_decoder.target import Target
from gumiho_decoder.training.config import TrainConfig
from gumiho_decoder.training.folder import Result, RunFolder
from gumiho_decoder.training.methods import save
from gumiho_decoder.training.session import Batches, Blocks, Features, Session, Step, accelerator_for
from gumiho_theory import InputError


def train(
    target: Target,
    batches: Batches,
    heldout: Blocks | None,
    config: TrainConfig,
    folder: Path,
    *,
    features: Features | None = None,
    data: Mapping[str, Any] | None = None,
    start: Path | None = None,
    keep_at: Collection[int] = (),
    resume: bool = False,
    progress: Callable[[Step], None] | None = None,
) -> Result:
    """Train a drafter and write it to a folder, as `load_drafter` reads it.

    Under `torchrun` or `accelerate launch` each process computes its share of the same batches, so that the loss is
    that of one process; the folder has to be one that all of them see. Ctrl-C ends the step in progress, saves a
    checkpoint, and raises KeyboardInterrupt; a second one does so at once, and saves nothing.

    Parameters
    ----------
    target : Target
        Frozen, on the device that this process trains on.
    batches : callable
        `batches(step)` returns the step's blocks, (batch, length), of all processes; it depends on the step alone.
    heldout : (Tensor, Tensor) or None
        A few blocks that are not trained on.
    config : TrainConfig
        With steps, not epochs.
    folder : path
        Also holds, while training, checkpoint.pt; and curve.jsonl: step, loss, tokens/s, held-out accuracy.
    features : callable, optional
        `features(step, rows)` returns the target's features of those rows of the step's batch, (rows, length, H); else
        the target computes them.
    data : mapping, optional
        What training.json says of the data; its `fingerprint`, if there is one, has to agree when a run is resumed.
    start : path, optional
        A drafter's folder in the own format, of the same shape: train on from its weights, of this target or another.
    keep_at : collection of int
        Steps after which the weights, as they stand, are also written as a drafter of their own, to step-N in the
        folder: to see what more training brings.
    resume : bool
        Go on from the folder's checkpoint, to the weights that an uninterrupted run gives.
    progress : callable, optional
        Called after each step (in the first process only).

    Raises
    ------
    InputError
        What is asked for cannot be trained, the folder holds a run that is not to be resumed or is another one, or the
        loss is no number any more.
    """
    data = dict(data or {})
    target_fingerprint = fingerprint(target.model)
    read = str(data.get("fingerprint", ""))
    if start is not None:
        data["start"] = hashlib.sha256((start / "model.safetensors").read_bytes()).hexdigest()
        read = f"{read}, from {data['start']}"
    run = RunFolder(folder, config, target_fingerprint, read)
    accelerator = accelerator_for(config, target)
    _check(target, heldout, config, accelerator.num_processes)
    found = run.begin(resume=resume)
    _check_agreed(accelerator, target, run, -1 if isinstance(found, Result) else 0 if found is None else found["step"])

    def say(message: str) -> None:
        if accelerator.is_main_process:
            print(message, file=sys.stderr)

    if isinstance(found, Result):
        say(f"{folder} holds this run, finished: nothing to do")
        return found
    if resume:
        begun = "none, begun from the start" if found is None else f"on from step {found['step']}"
        say(f"{run.checkpoint}: {begun}")
    session = Session(target, batches, heldout, config, run, accelerator, features, start)
    session.restore(found)
    with _Interrupts() as interrupts:
        while session.step < config.steps:
            done = session.advance()
            if accelerator.is_main_process:
                run.log(session.line(done))
                try:
                    if progress is not None:
                        progress(done)
                except KeyboardInterrupt:
                    interrupts.noted = True
            stop = session.any_process(interrupts.noted)
            if session.step in keep_at and session.step < config.steps and accelerator.is_main_process:
                kept = folder / f"step-{session.step}"
                kept.mkdir(exist_ok=True)
                save(target, session.model, config, kept, target_fingerprint)
            if stop or session.step % config.checkpoint_every == 0 or session.step == config.steps:
                session.save()
            if stop:
                accelerator.wait_for_everyone()
                say(f"interrupted after step {session.step}: {run.checkpoint} holds it, to be resumed")
                raise KeyboardInterrupt
    if accelerator.is_main_process:
        made = session.result()
        facts = {"target_name": target.name, "data_report": data, "processes": accelerator.num_processes}
        run.write_record(made, **facts, environment=environment(target.head_device, target.dtype))
        save(target, session.model, config, folder, target_fingerprint)
        run.checkpoint.unlink(missing_ok=True)
    accelerator.wait_for_everyone()
    return run.result()


class _Interrupts:
    """Ctrl-C while training: noted, so that the step in progress ends whole. SIGTERM, which launchers send, too."""

    def __init__(self) -> None:
        self.noted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupts:
        """Take over the signals; elsewhere than in the main thread Python does not allow it."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        """Give them back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.noted = True


def _check_agreed(accelerator: Any, target: Target, run: RunFolder, step: int) -> None:
    """Before anyone writes: what one process finds in the folder, all have to find."""
    steps = accelerator.gather(torch.tensor([step], device=target.head_device)).tolist()
    if len(set(steps)) > 1:
        raise InputError(str(run.folder), f"another state in each process ({steps})", "a folder that all of them see")


def _check(target: Target, heldout: Blocks | None, config: TrainConfig, processes: int) -> None:
    if config.steps is None:
        raise InputError("training, steps", f"none, but epochs {config.epochs}", "steps (TrainConfig.over)")
    parts = processes * config.gradient_accumulation
    if config.batch % parts:
        wanted = f"a multiple of {parts} ({processes} processes, gradient_accumulation {config.gradient_accumulation})"
        raise InputError("training, batch", config.batch, wanted)
    if config.length > target.positions:
        raise InputError(
            "training, length", config.length, f"at most {target.positions}, as target {target.name!r} reads"
        )
    if heldout is not None and (heldout[0].shape != heldout[1].shape or heldout[0].shape[1:] != (config.length,)):
        found = f"tokens {tuple(heldout[0].shape)}, mask {tuple(heldout[1].shape)}"
        raise InputError("held-out blocks", found, f"both (n, {config.length})")
