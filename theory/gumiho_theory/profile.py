"""CostProfile: the step times of a model pair on a device, and what a cycle costs with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.files import JsonFile, Schema, given_fields

TIMES = (
    "baseline_seconds",
    "verify_seconds",
    "draft_serial_seconds",
    "draft_parallel_seconds",
    "other_seconds",
    "draft_fixed_seconds",
    "layer_seconds",
    "head_seconds",
)
"""Fields that hold times: what `estimated` may name."""

LONGEST = 1e6
"""Seconds above which a time is a mistake: sums and products of such times stay finite."""
SHORTEST = 1e-12
"""Seconds that a forward pass takes at least."""
MOST = 10**6
"""Steps, layers, heads or nodes above which a count is a mistake."""


def _is_number(value: object) -> bool:
    # Compared, since isfinite overflows on whole numbers that no float can hold.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LONGEST


def _check_time(name: str, value: Any, least: float) -> None:
    if not _is_number(value) or value < least:
        raise InputError(name, repr(value), f"seconds, {least:g} to {LONGEST:g}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


@dataclass(frozen=True)
class CostProfile(JsonFile):
    """Step times, in seconds: measured, or estimated where `estimated` says so.

    Parameters
    ----------
    target, drafter, device, dtype : str
        What was measured.
    baseline_seconds : float
        One step of plain decoding, 1e-12 to 1e6 as each verification; other times 0 to 1e6.
    verify_nodes : tuple of int
        Numbers of tokens (root included) whose verification was timed, ascending.
    verify_seconds : tuple of float
        Time of one verification forward at each of them.
    draft_serial_seconds : float
        One serial draft step: what a further one adds.
    draft_parallel_seconds : float
        All parallel heads, once; 0 when the drafter has none.
    serial_steps : int
        Serial steps before the parallel heads take over; without parallel heads every depth is a serial step.
    other_seconds : float
        The rest of a cycle (accepting, cache, bookkeeping).
    draft_fixed_seconds : float
        What any draft costs on top of its steps: its first step also takes in the tokens accepted before. 0 in profiles
        that spread it over the steps.
    serial_layers, parallel_heads : int, optional
        Layers of the serial step and number of parallel heads that the draft times hold for.
    layer_seconds, head_seconds : float, optional
        What one layer adds to a serial step, and one more head to the parallel ones.
    relative_error : float, optional
        Standard error of a cycle's time in plain steps, as a share of it.
    estimated : tuple of str
        Names of the times above that were computed, not measured.

    Raises
    ------
    InputError
        Names the field.
    """

    schema = Schema("gumiho.cost_profile", 1)
    target: str
    drafter: str
    device: str
    dtype: str
    baseline_seconds: float
    verify_nodes: tuple[int, ...]
    verify_seconds: tuple[float, ...]
    draft_serial_seconds: float
    draft_parallel_seconds: float
    serial_steps: int
    other_seconds: float
    draft_fixed_seconds: float = 0.0
    serial_layers: int | None = None
    layer_seconds: float | None = None
    parallel_heads: int | None = None
    head_seconds: float | None = None
    relative_error: float | None = None
    estimated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("target", "drafter", "device", "dtype"):
            if not isinstance(getattr(self, name), str):
                raise InputError(name, repr(getattr(self, name)), "text")
        _check_time("baseline_seconds", self.baseline_seconds, SHORTEST)
        for name in ("draft_serial_seconds", "draft_parallel_seconds", "draft_fixed_seconds", "other_seconds"):
            _check_time(name, getattr(self, name), 0)
        if not _is_count(self.serial_steps):
            raise InputError("serial_steps", repr(self.serial_steps), f"an integer, 0 to {MOST}")
        for name in ("serial_layers", "parallel_heads"):
            if getattr(self, name) is not None and not _is_count(getattr(self, name)):
                raise InputError(name, repr(getattr(self, name)), f"an integer, 0 to {MOST}, or null")
        for name in ("layer_seconds", "head_seconds", "relative_error"):
            value = getattr(self, name)
            if value is not None and (not _is_number(value) or value < 0):
                raise InputError(name, repr(value), f"a number, 0 to {LONGEST:g}, or null")
        for name in ("verify_nodes", "verify_seconds", "estimated"):
            if not isinstance(getattr(self, name), list | tuple):
                raise InputError(name, repr(getattr(self, name)), "a list")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in self.estimated:
            if name not in TIMES:
                raise InputError("estimated", repr(name), f"names among {', '.join(TIMES)}")
        if not self.verify_nodes or len(self.verify_nodes) != len(self.verify_seconds):
            raise InputError(
                "verify_nodes and verify_seconds",
                f"{len(self.verify_nodes)} and {len(self.verify_seconds)} values",
                "as many of one as of the other, at least one",
            )
        for value in self.verify_seconds:
            _check_time("verify_seconds", value, SHORTEST)
        object.__setattr__(self, "verify_seconds", tuple(float(value) for value in self.verify_seconds))
        before = 0
        for value in self.verify_nodes:
            if not _is_count(value) or value <= before:
                raise InputError("verify_nodes", repr(value), f"ascending integers, 1 to {MOST} (after {before})")
            before = value

    def verify_at(self, nodes: float) -> float:
        """Time of verifying `nodes` tokens (root included), in seconds; linear between measured points.

        Raises
        ------
        InputError
            Outside the measured range.
        """
        if not self.verify_nodes[0] <= nodes <= self.verify_nodes[-1]:
            raise InputError("nodes", nodes, f"{self.verify_nodes[0]} to {self.verify_nodes[-1]}, as measured")
        return float(np.interp(nodes, self.verify_nodes, self.verify_seconds))

    def draft_seconds(self, depth: int) -> float:
        """Time of drafting to `depth`, in seconds: serial steps, then the parallel heads once if deeper.

        Drafting nothing takes no time; anything else `draft_fixed_seconds` too.
        """
        if depth < 0:
            raise InputError("depth", depth, "at least 0")
        if depth == 0:
            return 0.0
        if depth <= self.serial_steps or self.draft_parallel_seconds == 0:
            return self.draft_fixed_seconds + depth * self.draft_serial_seconds
        steps = self.serial_steps * self.draft_serial_seconds
        return self.draft_fixed_seconds + steps + self.draft_parallel_seconds

    def cycle_seconds(self, depth: int, nodes: float) -> float:
        """Time of one cycle, in seconds: draft to `depth`, verify `nodes` tokens (root included), the rest.

        Raises
        ------
        InputError
            For a negative depth or nodes outside the measured range.
        """
        return self.draft_seconds(depth) + self.verify_at(nodes) + self.other_seconds

    def speedup(self, tau: float, depth: int, nodes: float) -> float:
        """Speed relative to plain decoding: tau (bonus included) plain steps for each cycle's time.

        Raises
        ------
        InputError
            For tau outside [1, depth + 1], a negative depth, or nodes outside the measured range.
        """
        if not 1.0 <= tau <= depth + 1 + 1e-9:
            raise InputError("tau", tau, f"1 to depth + 1 = {depth + 1}")
        return tau * self.baseline_seconds / self.cycle_seconds(depth, nodes)

    def _to_values(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def _from_values(cls, data: Mapping[str, Any]) -> CostProfile:
        return cls(**given_fields(cls, data))
