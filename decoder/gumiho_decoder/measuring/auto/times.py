"""What cycles take on this machine: timed once for a pair, then kept in the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.measuring.profile.pairs import DEPTH, NODES, device_name, measure
from gumiho_decoder.measuring.profile.parts import CycleParts, interleaved
from gumiho_decoder.target import Target
from gumiho_theory import CostProfile, InputError, Structure
from gumiho_theory.files import read_json, write_json

SCHEMA = "gumiho.auto/2"
_REPEATS = 9
_MOST_NODES = 64  # about the largest tree that is tried
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


def measure_times(
    target: Target,
    drafter: TreeDrafter,
    structures: Sequence[Structure],
    text: Sequence[int],
    config: GenerationConfig,
) -> Times:
    """Time plain steps, cycles behind a text of at least 2 tokens, and the parts of a cycle."""
    ends = target.positions_with(drafter)
    room = ends - max(structure.depth for structure in structures)
    # It ends as it begins: so n-grams find something to draft, whatever the text is.
    cycle = CycleParts(target, drafter, [*text[: room - 4], *text[:4]], config)
    parts = {None: cycle.step} | {structure: partial(cycle.whole, structure) for structure in structures}
    seconds = interleaved(parts, _REPEATS)

    nodes = [n for n in NODES if n <= min(_MOST_NODES, ends // 2)]
    context = min(128, ends - max(nodes[-1], 1 + (drafter.depth or DEPTH)))
    profile = measure(target, drafter, context=context, nodes=nodes, repeats=5)
    return Times(seconds[None], tuple((structure, seconds[structure]) for structure in structures), profile)


@dataclass(frozen=True)
class KeptTimes:
    """Where a pair's times are kept, and whose they are.

    Attributes
    ----------
    key : str
        Digest of all that the times depend on.
    path : Path or None
        None where the user has no home.
    """

    key: str
    path: Path | None

    @classmethod
    def of(cls, target: Target, drafter: TreeDrafter, config: GenerationConfig) -> KeptTimes:
        """Return the place of the times of a pair on this machine, in the user's cache."""
        key = _digest(target, drafter, config)
        try:
            base = os.environ.get("XDG_CACHE_HOME", "")
            folder = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
        except RuntimeError:
            return cls(key, None)
        return cls(key, folder / "gumiho" / f"auto-{key}.json")

    def read(self, structures: Sequence[Structure]) -> Times | None:
        """Return the times on disk; None where there are none of just these structures."""
        try:
            data = {} if self.path is None else read_json(self.path, _CACHE_BYTES)
            if data.get("schema") == SCHEMA and data.get("key") == self.key:
                times = Times.from_json(data)
                return times if [structure for structure, _ in times.cycles] == list(structures) else None
        except (InputError, AttributeError, KeyError, TypeError):
            pass  # unreadable, or somebody else's: it is measured again
        return None

    def write(self, times: Times) -> None:
        """Keep the times, if that can be done."""
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.path, {"schema": SCHEMA, "key": self.key, **times.to_json()})
        except (InputError, OSError):
            pass  # a home that cannot be written: next time it is measured again


def _digest(target: Target, drafter: TreeDrafter, config: GenerationConfig) -> str:
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


def _above_0(data: Mapping[str, Any], name: str) -> float:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise InputError(name, repr(value), "a number above 0")
    return float(value)
