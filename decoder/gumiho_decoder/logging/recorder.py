"""Trace rows from cycles, and the provenance that goes with them."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Cycle
from gumiho_decoder.draft import Drafter
from gumiho_decoder.target import Target
from gumiho_theory import Trace


class Recorder:
    """Collects the rows of a trace, prompt by prompt."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def __bool__(self) -> bool:
        """Whether anything was recorded."""
        return bool(self._rows)

    def prompt(self, prompt_id: str, task: str | None, turn: int) -> Callable[[Cycle], None]:
        """Return the function that `generate` calls after each cycle of this turn."""
        first = len(self._rows)

        def record(cycle: Cycle) -> None:
            head = {"prompt_id": prompt_id, "task": task, "turn": turn, "cycle": len(self._rows) - first}
            self._rows.append(head | _row(cycle))

        return record

    def trace(self, provenance: dict[str, Any]) -> Trace:
        """Return what was recorded so far."""
        return Trace.from_rows(self._rows, provenance)


def _row(cycle: Cycle) -> dict[str, Any]:
    scalars = "position drafted accepted committed censored_at stop_reason draft_seconds verify_seconds other_seconds"
    row: dict[str, Any] = {name: getattr(cycle, name) for name in scalars.split()}
    draft = cycle.draft
    row["nodes"] = draft.n_nodes
    known = cycle.drafted if cycle.censored_at is None else cycle.censored_at
    reached = min(cycle.accepted + 1, known)
    nothing: list[Any] = [None] * cycle.drafted
    scores = draft.path_scores
    if not reached:
        expected = None if scores is None else 0.0  # a root alone
        return row | {"rank": nothing, "q_draft": nothing, "p_target": nothing, "expected_accepted": expected}
    # Depth i stands behind the i-th node of the path: there the drafter ranked all tokens, the target chose new[i - 1].
    nodes = torch.tensor(cycle.path[:reached], device=draft.row.device)
    true = torch.tensor(cycle.new[:reached], device=nodes.device)[:, None]
    p_target = cycle.verified.logits[nodes].softmax(-1).gather(1, true)
    at = draft.row[nodes]  # -1 where the drafter stopped: a leaf's candidates were never ranked
    log_q = draft.log_q[at.clamp_min(0)]
    of_true = log_q.gather(1, true)
    rank = (log_q > of_true).sum(-1, keepdim=True) + 1
    ranked = ((at >= 0)[:, None] & of_true.isfinite()).long()  # a token that was no candidate at all has no rank
    # All are read at once: each time the host reads, it waits for the device.
    expected = p_target.new_zeros(()) if scores is None else scores.exp().sum()
    columns = torch.cat([ranked, rank, of_true.exp(), p_target, expected.expand_as(rank)], dim=1).double().tolist()
    rest = [None] * (cycle.drafted - reached)
    row["rank"] = [*(int(r) if ranked else None for ranked, r, *_ in columns), *rest]
    row["q_draft"] = [*(q if at >= 0 else None for at, (_, _, q, *_) in zip(at.tolist(), columns, strict=True)), *rest]
    row["p_target"] = [*(p for *_, p, _ in columns), *rest]
    row["expected_accepted"] = None if scores is None else columns[0][-1]
    return row


def environment(device: torch.device, dtype: torch.dtype) -> dict[str, Any]:
    """Return the versions, commit, command line and machine that a result was made with."""
    return {
        "gumiho": _version("gumiho"),
        "torch": torch.__version__,
        "transformers": _version("transformers"),
        "python": platform.python_version(),
        "platform": platform.machine(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": torch.get_num_threads(),
        "dtype": str(dtype).removeprefix("torch."),
        "commit": _commit(),
        "arguments": sys.argv[1:],
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """Return the commit of the checkout that tracks this file; None where the package is installed otherwise."""
    here = Path(__file__)
    try:
        # Installed into an environment that lies inside somebody's repository, that repository's commit says nothing.
        _git(here, "ls-files", "--error-unmatch", here.name)
        return _git(here, "rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(here: Path, *arguments: str) -> str:
    command = ["git", "-C", str(here.parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def provenance(target: Target, drafter: Drafter, generation: GenerationConfig) -> dict[str, Any]:
    """Return what is written into a trace: versions and machine, models, settings."""
    shape = getattr(drafter, "config", None)
    return environment(target.device, target.dtype) | {
        "target": target.name,
        "drafter": drafter.name,
        "method": drafter.method,
        "drafter_shape": asdict(shape) if is_dataclass(shape) else None,
        "drafter_fingerprint": drafter.fingerprint,
        "structure": str(generation.structure),
        "max_new_tokens": generation.max_new_tokens,
        "temperature": generation.temperature,
        "top_k": generation.top_k,
        "top_p": generation.top_p,
        "candidates": generation.candidates,
        "mode": generation.mode,
        "lossless_mode": generation.lossless,
        "fta": generation.fta,
        "calibrated": generation.calibration is not None,
        "seed": None if generation.warp.greedy else generation.seed,  # greedy decoding draws nothing
    }
