"""Step times of a pair on this machine, kept on disk: they belong to the machine and the pair, not to the prompts."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.growing import TreeDrafter
from gumiho_decoder.measuring.profile.times import device_name
from gumiho_decoder.target import Target
from gumiho_theory import CostProfile, InputError, Structure
from gumiho_theory.files import read_json, write_json

SCHEMA = "gumiho.auto/2"
_CACHE_BYTES = 1 << 20


@dataclass(frozen=True)
class Times:
    """What steps of a pair take on a machine: all that is kept on disk.

    Attributes
    ----------
    baseline_seconds : float
        One step of plain decoding.
    cycles : tuple of (Structure, float)
        Of each candidate, the seconds of a whole cycle.
    profile : CostProfile
    """

    baseline_seconds: float
    cycles: tuple[tuple[Structure, float], ...]
    profile: CostProfile

    def to_json(self) -> dict[str, Any]:
        """Return the times as JSON values."""
        return {
            "baseline_seconds": self.baseline_seconds,
            "cycles": [{"structure": structure.to_json(), "seconds": took} for structure, took in self.cycles],
            "profile": self.profile.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Times:
        """Read what `to_json` returned; InputError, KeyError, TypeError or AttributeError if it is something else."""
        rows = tuple((Structure.from_json(row["structure"]), _above_0(row, "seconds")) for row in data["cycles"])
        return cls(_above_0(data, "baseline_seconds"), rows, CostProfile.from_json(data["profile"]))


def key_of(target: Target, drafter: TreeDrafter, config: GenerationConfig) -> str:
    """Return a digest of all that the times depend on."""
    shape = getattr(drafter, "config", None)
    facts = {
        "target": [target.name, target.config.to_dict()],
        "drafter": [drafter.name, drafter.method, asdict(shape) if is_dataclass(shape) else None, drafter.fingerprint],
        "machine": [device_name(target), str(target.dtype), torch.get_num_threads(), torch.__version__],
        "sampling": [config.temperature, config.top_k, config.top_p],
        "calibration": None if config.calibration is None else config.calibration.to_json(),
        "budget": None if config.budget is None else config.budget.to_json(),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def path_of(key: str) -> Path | None:
    """Return where the times are kept; None where the user has no home."""
    try:
        base = os.environ.get("XDG_CACHE_HOME", "")
        folder = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError:
        return None
    return folder / "gumiho" / f"auto-{key}.json"


def kept(path: Path | None, key: str, structures: Sequence[Structure]) -> Times | None:
    """Return the times on disk; None where there are none of just these structures."""
    try:
        data = {} if path is None else read_json(path, _CACHE_BYTES)
        if data.get("schema") == SCHEMA and data.get("key") == key:
            times = Times.from_json(data)
            return times if [structure for structure, _ in times.cycles] == list(structures) else None
    except (InputError, AttributeError, KeyError, TypeError):
        pass  # unreadable, or somebody else's: it is measured anew
    return None


def keep(path: Path, key: str, times: Times) -> None:
    """Keep the times for another run, where the user's cache can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"schema": SCHEMA, "key": key, **times.to_json()})
    except (InputError, OSError):
        pass  # a home that cannot be written: next time it is measured anew


def _above_0(data: Mapping[str, Any], name: str) -> float:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise InputError(name, repr(value), "a number above 0")
    return float(value)
