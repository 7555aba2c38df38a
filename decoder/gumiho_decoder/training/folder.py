"""The folder of a training run: checkpoint and curve while it runs, weights and training.json when it is done."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.training.config import TrainConfig
from gumiho_theory import InputError
from gumiho_theory.files import check_writable, dumps_json, read_json, reason, write_atomically, write_json

_SCHEMA = "gumiho.training/1"
FEATURES = "features"  # the cache's folder, which is there before the run begins
_RUN = ("checkpoint.pt", "curve.jsonl", "training.json", "model.safetensors", "config.json")


@dataclass(frozen=True)
class Result:
    """What a finished run comes to.

    Attributes
    ----------
    steps : int
        Optimizer steps.
    tokens : int
        Tokens of the blocks read, padding included.
    loss : float
        Mean training loss of the last steps, up to 50.
    heldout_accuracy : list of float or None
        Per draft position; see `methods.heldout_accuracy`.
    seconds : float
        Trained in all, over every session.
    """

    steps: int
    tokens: int
    loss: float
    heldout_accuracy: list[float | None]
    seconds: float


class RunFolder:
    """Where a run is written. A folder with a config.json holds a finished drafter: that file is written last.

    Parameters
    ----------
    folder : path
    config : TrainConfig
    target : str
        Fingerprint of the target's weights.
    data : str
        Fingerprint of the training blocks; empty where the caller has none.
    """

    def __init__(self, folder: Path, config: TrainConfig, target: str, data: str) -> None:
        self.folder, self.config = folder, config
        self._of = {"target": target, "data": data}
        self.checkpoint, self.curve, self._record = (folder / name for name in _RUN[:3])

    def begin(self, *, resume: bool) -> Result | dict[str, Any] | None:
        """Return what is there to go on from: the result of a finished run, the last checkpoint, or None.

        Raises InputError: A run is there and is not to be resumed, or it was begun with other settings, target or data
        (named), or it cannot be read; or nothing can be written there.
        """
        check_free(self.folder, resume=resume)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(str(self.folder), reason(error), "a folder that can be made and written") from error
        if (self.folder / "config.json").exists():
            return self._finished()
        if not self.checkpoint.exists():
            self.cut_curve(0)
            return None
        state = _load(self.checkpoint)
        self._check_same(state, str(self.checkpoint))
        self._check_progress(state)
        self.cut_curve(state["step"])
        return state

    def save(self, state: Mapping[str, Any]) -> None:
        """Write a checkpoint; the one before stays until this one is whole."""
        part = self.checkpoint.with_suffix(".part")
        head = {"schema": _SCHEMA, "config": self.config.to_json(), **self._of}
        try:
            with part.open("wb") as file:
                torch.save({**head, **state}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self.checkpoint)
        except (OSError, RuntimeError) as error:  # a full disk is the latter to torch
            if part.is_file():
                part.unlink()
            raise InputError(str(self.checkpoint), reason(error), "a file that can be written") from error

    def log(self, line: Mapping[str, Any]) -> None:
        """Add a line to the curve."""
        try:
            with self.curve.open("a", encoding="utf-8") as file:
                file.write(dumps_json(str(self.curve), line) + "\n")
        except OSError as error:
            raise InputError(str(self.curve), reason(error), "a file that can be written") from error

    def cut_curve(self, step: int) -> None:
        """Take from the curve what a run that goes on from `step` writes anew."""
        if not self.curve.exists():
            return
        try:
            lines = self.curve.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InputError(str(self.curve), reason(error), "a readable file") from error
        kept = []
        for line in lines:
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # a line that was cut short, or none of ours
        write_atomically(self.curve, lambda file: file.write("".join(kept).encode()))

    def write_record(self, result: Result, **facts: Any) -> None:
        """Write training.json."""
        head = {"schema": _SCHEMA, "config": self.config.to_json(), **self._of}
        write_json(self._record, {**head, "result": asdict(result), **facts})

    def result(self) -> Result:
        """Read the result of training.json."""
        return Result(**read_json(self._record)["result"])

    def _finished(self) -> Result:
        if not self._record.exists():
            raise InputError(str(self.folder), "a drafter without training.json", "a run of this command, or none")
        record = read_json(self._record)
        self._check_same(record, str(self._record))
        try:
            return Result(**record["result"])
        except (KeyError, TypeError) as error:
            raise InputError(f"{self._record}, result", error, "steps, tokens, loss, accuracy, seconds") from error

    def _check_progress(self, state: Mapping[str, Any]) -> None:
        step, losses = state["step"], state["losses"]
        if isinstance(step, bool) or not isinstance(step, int) or not 0 < step <= (self.config.steps or 0):
            raise InputError(f"{self.checkpoint}, step", repr(step), f"an integer from 1 to {self.config.steps}")
        if not isinstance(losses, list) or not losses or not all(isinstance(loss, float) for loss in losses):
            raise InputError(f"{self.checkpoint}, losses", repr(losses)[:80], "the last steps' losses")

    def _check_same(self, found: Mapping[str, Any], place: str) -> None:
        config = found.get("config")
        if found.get("schema") != _SCHEMA or not isinstance(config, Mapping):
            raise InputError(place, f"schema {found.get('schema')!r}", f"{_SCHEMA!r}")
        self.config.check_same(TrainConfig.from_json(config, f"{place}, config"), "training")
        for name, wanted in self._of.items():
            if found.get(name) != wanted:
                other = f"that of a run on another {name} ({found.get(name)!r})"
                raise InputError(f"{place}, {name}", other, f"{wanted!r}")


def check_free(folder: Path, *, resume: bool) -> None:
    """Make sure that a run can be written into a folder, or that the one in it is to be resumed; nothing is touched.

    Raises InputError: A run is in it and is not to be resumed, or nothing can be written there.
    """
    try:
        there = sorted(path.name for path in folder.iterdir() if path.name != FEATURES) if folder.is_dir() else []
        exists = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder that can be made and written") from error
    # A draft model brings tokenizer files of its own names: a folder that holds anything is not written into.
    if there and not resume:
        found = f"{'a run' if set(there) & set(_RUN) else 'files'} ({', '.join(there[:5])})"
        raise InputError(str(folder), found, "an empty or a new folder, or that its run is resumed")
    check_writable(exists)


def _load(path: Path) -> dict[str, Any]:
    wanted = "a checkpoint of this command"
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # whatever a file that is none makes of the unpickler: its errors have no common base
        raise InputError(str(path), str(error) or type(error).__name__, wanted) from error
    needed = ("schema", "config", "target", "data", "model", "optimizers", "scaler", "step", "seconds", "losses")
    if not isinstance(state, dict) or (missing := [name for name in needed if name not in state]):
        found = "no dict" if not isinstance(state, dict) else f"no {missing[0]}"
        raise InputError(str(path), found, wanted)
    return state
