"""An allocation of draft heads, serial steps and parallel heads, what drafting costs with it, and the front of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gumiho_theory import CostProfile, InputError

CONVENTION = "tau: bonus included, micro, over complete cycles; 95 % intervals, prompts resampled"


@dataclass(frozen=True)
class Allocation:
    """One allocation and what it gives.

    Parameters
    ----------
    serial, parallel
        Draft positions by serial steps, and by parallel heads behind them.
    serial_layers
        Layers of a serial step; None where not said.
    nodes
        Tokens verified a cycle, root included; their mean where they vary.
    tau, lo, hi
        Bonus included, micro, with 95 % limits clustered by prompt; None without two prompts, or where rates were
        given without their uncertainty.
    cycle_seconds
        Mean time of a cycle under the profile.
    speedup, speedup_lo, speedup_hi
        Over plain decoding, with limits like those of tau.
    structure
        What is drafted; None where it is the best tree of so many nodes.
    source
        The trace; None without one.
    """

    serial: int
    parallel: int
    serial_layers: int | None
    nodes: float
    tau: float
    lo: float | None
    hi: float | None
    cycle_seconds: float
    speedup: float
    speedup_lo: float | None = None
    speedup_hi: float | None = None
    structure: str | None = None
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the allocation as plain values, one key a field."""
        return dict(vars(self))

    @property
    def heads(self) -> str:
        """Serial steps x layers of each + parallel heads."""
        layers = f"x{self.serial_layers}" if self.serial_layers else ""
        return f"{self.serial}{layers}+{self.parallel}"

    def __str__(self) -> str:
        """Return its counts in words."""
        layers = "" if self.serial_layers is None else f" of {self.serial_layers} layers"
        return f"{self.serial} serial{layers} + {self.parallel} parallel, {self.nodes:g} nodes"


@dataclass(frozen=True)
class Allocations:
    """All allocations that were compared.

    Parameters
    ----------
    rows
        In the order tried.
    best
        Of the largest speed-up.
    front
        Those that no other beats in both tau and cycle time, by rising cycle time.
    warnings
        What was left out, and why.
    assumptions
        How the profile's times were carried over to other heads than it was made with.
    regret
        Expected loss of speed-up by taking `best`: over resamples of the prompts, the mean of the largest speed-up
        less that of `best`; None where nothing could be resampled.
    best_probability
        Share of resamples in which `best` is the fastest; None likewise.
    prompts
        Prompts that were resampled.
    seed
        Of the resampling.
    convention
        Of tau and the intervals.
    """

    rows: tuple[Allocation, ...]
    best: Allocation
    front: tuple[Allocation, ...]
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    regret: float | None = None
    best_probability: float | None = None
    prompts: int = 0
    seed: int = 0
    convention: str = CONVENTION

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho allocate --json`` prints: the fields, and of each allocation its own."""
        rows, front = ([one.to_json() for one in some] for some in (self.rows, self.front))
        return {**vars(self), "rows": rows, "best": self.best.to_json(), "front": front}


class HeadCosts:
    """A profile's draft times, carried over to other numbers of serial layers and parallel heads.

    Parameters
    ----------
    profile
        Step times of a pair.
    layers
        Layers of the profile's serial step where it does not say itself.
    """

    def __init__(self, profile: CostProfile, layers: int | None = None) -> None:
        self.profile = profile
        self.layers = profile.serial_layers if profile.serial_layers is not None else layers
        self.assumptions: dict[str, None] = {}

    def serial_seconds(self, layers: int | None) -> float:
        """Time of one serial step of so many layers; of the profile's own where `layers` is None."""
        base = self.profile.draft_serial_seconds
        if layers is None or self.layers is None or layers == self.layers:
            return base
        if self.profile.layer_seconds is not None:
            return max(0.0, base + (layers - self.layers) * self.profile.layer_seconds)
        self._assume(
            f"a serial step takes time in proportion to its layers ({self.layers} in the profile): it does not say "
            "what the vocabulary takes"
        )
        return base * layers / max(self.layers, 1)

    def parallel_seconds(self, heads: int) -> float:
        """Time of so many parallel heads at once.

        Raises
        ------
        InputError
            The profile has none, so that nothing is known of them.
        """
        base, known = self.profile.draft_parallel_seconds, self.profile.parallel_heads
        if heads == 0:
            return 0.0
        if base == 0:
            raise InputError("profile, draft_parallel_seconds", 0, "the time of parallel heads")
        if self.profile.head_seconds is not None and known is not None:
            return max(0.0, base + (heads - known) * self.profile.head_seconds)
        if known != heads:
            self._assume("parallel heads take as long, however many: the profile does not say what one takes")
        return base

    def draft_seconds(self, depth: int, serial: int, layers: int | None, parallel: int) -> float:
        """Time of drafting to `depth` with up to `serial` steps, and the parallel heads if that is not enough."""
        if depth == 0:
            return 0.0
        steps = min(depth, serial) * self.serial_seconds(layers)
        return self._fixed_seconds(serial) + steps + (self.parallel_seconds(parallel) if depth > serial else 0.0)

    def _fixed_seconds(self, serial: int) -> float:
        """Return what any draft of so many serial steps costs on top of them."""
        profile = self.profile
        known = profile.draft_fixed_seconds > 0 or "draft_serial_seconds" in profile.estimated
        if not known and serial != profile.serial_steps:
            self._assume(
                f"the first serial step takes no longer than a further one ({profile.serial_steps} in the profile): "
                "it does not say what any draft costs, to take in the accepted tokens"
            )
        # It is the serial part that takes them in: without one it costs nothing.
        return profile.draft_fixed_seconds if serial or not profile.serial_steps else 0.0

    def _assume(self, text: str) -> None:
        self.assumptions[text] = None


def pareto_front(rows: Sequence[Allocation]) -> tuple[Allocation, ...]:
    """Return the allocations that no other beats in both tau and cycle time.

    Parameters
    ----------
    rows
        Allocations.

    Returns
    -------
    tuple of Allocation
        By rising cycle time, tau rising with it; of equals the first.
    """
    front: list[Allocation] = []
    for one in sorted(rows, key=lambda row: (row.cycle_seconds, -row.tau)):
        if not front or one.tau > front[-1].tau:
            front.append(one)
    return tuple(front)
