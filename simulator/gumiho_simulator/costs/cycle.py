"""What a cycle costs, from the times that traces log: serial draft steps, parallel heads, verification, the rest."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumiho_simulator.costs.step_time import (
    FEWEST_SIZES,
    Kind,
    LengthError,
    StepTime,
    StepTimeFit,
    better_kind,
    error_of,
    fit_kind,
    fit_step_time,
    relative_least_squares,
)
from gumiho_theory import CostProfile, InputError, Trace
from gumiho_theory.types import FloatArray

_CONTEXT_BIN = 64  # tokens of context taken together
_FEWEST_CYCLES = 3  # cycles that a quartile is taken of
_QUARTILE = 25  # as `gumiho profile` has it: what gets in the way only ever adds time


@dataclass(frozen=True)
class CycleTimes:
    """Usual times of cycles that drafted and verified as much, behind about as much context.

    Parameters
    ----------
    drafted, nodes, context, cycles : ndarray [M]
        Depth of the draft, tokens verified (root included), mean tokens before them, cycles of the group.
    draft, verify, other : ndarray [M]
        Lower quartiles, seconds: another program beside the decoder adds to means, hardly to these.
    """

    drafted: FloatArray
    nodes: FloatArray
    context: FloatArray
    cycles: FloatArray
    draft: FloatArray
    verify: FloatArray
    other: FloatArray

    @property
    def whole(self) -> FloatArray:
        """Seconds of the cycle [M]."""
        return self.draft + self.verify + self.other

    def select(self, keep: NDArray[np.bool_]) -> CycleTimes:
        """Return some of the groups."""
        return CycleTimes(*(getattr(self, name)[keep] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class CycleCost:
    """A cycle's time, fitted to logs.

    Parameters
    ----------
    serial_steps
        Positions drafted one after another before the parallel heads; None: all.
    draft_fixed, serial, parallel
        Seconds: of any draft, of each serial step, of the parallel heads once.
    verify
        Time of the verification by its tokens.
    other
        Seconds of the rest of a cycle.
    errors
        Of whole cycles, for each kind of verification model, each draft length left out in turn and predicted from
        the others; empty with fewer than three lengths, when a line is taken.
    nodes
        Numbers of tokens verified in the logs, ascending.
    context
        Mean tokens before a cycle.
    provenance
        What the first log says of itself; empty without one.
    """

    serial_steps: int | None
    draft_fixed: float
    serial: float
    parallel: float
    verify: StepTime
    other: float
    errors: tuple[LengthError, ...]
    nodes: tuple[int, ...]
    context: float
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def error(self) -> LengthError | None:
        """Of the kind taken."""
        return error_of(self.verify.kind, self.errors)

    def seconds(self, drafted: ArrayLike, nodes: ArrayLike, context: ArrayLike) -> FloatArray:
        """Time of cycles.

        Parameters
        ----------
        drafted, nodes, context : array_like [...]
            Depth of the draft, tokens verified (root included), tokens before them.

        Returns
        -------
        ndarray [...]
            Seconds.
        """
        weights = np.array([self.draft_fixed, self.serial, self.parallel])
        draft = _draft_columns(np.asarray(drafted, dtype=np.float64), self.serial_steps) @ weights
        seconds: FloatArray = draft + self.verify.seconds(nodes, context) + self.other
        return seconds

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho cost TRACE… --json`` prints: `StepTime.to_json`, the other times in ms, and errors."""
        return {
            **self.verify.to_json(),
            "serial_steps": self.serial_steps,
            "serial_ms": 1000 * self.serial,
            "parallel_ms": 1000 * self.parallel,
            "draft_fixed_ms": 1000 * self.draft_fixed,
            "other_ms": 1000 * self.other,
            "errors": [vars(one) for one in self.errors],
        }

    def to_profile(
        self,
        baseline_seconds: float,
        target: str | None = None,
        drafter: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
    ) -> CostProfile:
        """Return the costs as a profile, at the mean context of the logs.

        Parameters
        ----------
        baseline_seconds
            One step of plain decoding, which no log of drafts holds.
        target, drafter, device, dtype
            What the times belong to; as the first log says where not given.

        Returns
        -------
        CostProfile
            `relative_error` is the root mean square error of the lengths left out.

        Raises
        ------
        InputError
            A baseline that is not above 0.
        """
        facts = self.provenance
        return CostProfile(
            target=target or str(facts.get("target")),
            drafter=drafter or str(facts.get("drafter")),
            device=device or str(facts.get("device")),
            dtype=dtype or str(facts.get("dtype")),
            baseline_seconds=baseline_seconds,
            verify_nodes=self.nodes,
            verify_seconds=tuple(self.verify.seconds(self.nodes, self.context).tolist()),
            draft_serial_seconds=self.serial,
            draft_parallel_seconds=self.parallel,
            serial_steps=max(self.nodes) - 1 if self.serial_steps is None else self.serial_steps,
            other_seconds=self.other,
            draft_fixed_seconds=self.draft_fixed,
            relative_error=None if self.error is None else self.error.rms,
        )


def fit_costs(files: Sequence[str | os.PathLike[str]]) -> StepTimeFit | CycleCost:
    """Fit what a cycle costs to files.

    Parameters
    ----------
    files
        Cycle traces of one drafter, or one cost profile, which ends in .json.

    Returns
    -------
    StepTimeFit or CycleCost
        A profile's verification by its tokens; or, from traces, the cycle with all its parts.

    Raises
    ------
    InputError
        A file that cannot be read, or what `fit_step_time` and `fit_cycle_cost` refuse.
    """
    if len(files) > 1 or Path(files[0]).suffix.lower() != ".json":
        return fit_cycle_cost([Trace.read(path) for path in files])
    profile = CostProfile.read(files[0])
    try:
        return fit_step_time(profile.verify_nodes, profile.verify_seconds)
    except InputError as error:
        raise error.within(files[0]) from None


def fit_cycle_cost(traces: Sequence[Trace]) -> CycleCost:
    """Fit a cycle's time to logs of one drafter on one machine, drafting to several depths.

    Parameters
    ----------
    traces
        Traces with times. Where their provenance gives the drafter's serial steps, later positions are the parallel
        heads'; else every position is a serial step.

    Returns
    -------
    CycleCost
        With the kind of verification model (line or stair) that predicts left-out lengths better.

    Raises
    ------
    InputError
        No cycle with times, traces of several drafters, or a single number of verified tokens.
    """
    drafters = {_drafter(trace) for trace in traces}
    if len(drafters) > 1:
        raise InputError("traces", f"drafters {', '.join(sorted(map(str, drafters)))}", "traces of one drafter")
    fitted = fit_cycle_times(_cycle_times(traces), next(iter(drafters))[1])
    return replace(fitted, provenance=traces[0].provenance)


def fit_cycle_times(times: CycleTimes, serial_steps: int | None) -> CycleCost:
    """Fit a cycle's time to times of its parts; see `fit_cycle_cost`.

    `times`: Times by what was drafted and verified. `serial_steps`: Positions drafted one after another before the
    parallel heads; None: all. Returns the fit. Raises InputError: A single number of verified tokens.
    """
    if np.unique(times.nodes).size < 2:
        raise InputError("cycles", f"{np.unique(times.nodes).size} numbers of verified tokens", "at least two")
    kind, errors = better_kind(lambda kind: _left_out(times, serial_steps, kind))
    return _fit(times, serial_steps, kind, errors)


def _drafter(trace: Trace) -> tuple[str | None, int | None]:
    shape: Any = trace.provenance.get("drafter_shape")
    steps = shape.get("serial_steps") if isinstance(shape, dict) else None
    name = trace.provenance.get("drafter")
    known = isinstance(steps, int) and not isinstance(steps, bool) and steps >= 0
    return name if isinstance(name, str) else None, steps if known else None


def _cycle_times(traces: Sequence[Trace]) -> CycleTimes:
    rows = []
    for trace in traces:
        parts = np.stack([trace.draft_seconds, trace.verify_seconds, trace.other_seconds])
        # A turn's first cycle also brings the drafter up to the prompt; a draft of nothing says nothing of drafting.
        timed = (parts > 0).all(axis=0) & (trace.cycle > 0) & (trace.drafted > 0)
        keys = np.stack([trace.drafted, trace.nodes, trace.position // _CONTEXT_BIN])[:, timed]
        groups, group = np.unique(keys, axis=1, return_inverse=True)
        order = np.argsort(group, kind="stable")
        edges = np.searchsorted(group[order], np.arange(groups.shape[1] + 1))
        seconds, position = parts[:, timed][:, order], trace.position[timed][order]
        for index, (low, high) in enumerate(itertools.pairwise(edges)):
            if high - low >= _FEWEST_CYCLES:
                size = (*groups[:2, index], position[low:high].mean(), high - low)
                rows.append((*size, *np.percentile(seconds[:, low:high], _QUARTILE, axis=1)))
    if not rows:
        raise InputError("traces", "no three like cycles with times", "draft, verify and other seconds of cycles")
    return CycleTimes(*np.array(rows, dtype=np.float64).T)


def _fit(times: CycleTimes, serial_steps: int | None, kind: Kind, errors: tuple[LengthError, ...]) -> CycleCost:
    draft, _ = relative_least_squares(_draft_columns(times.drafted, serial_steps), times.draft)
    draft_fixed, serial, parallel = map(float, draft)
    return CycleCost(
        serial_steps=serial_steps,
        draft_fixed=draft_fixed,
        serial=serial,
        parallel=parallel,
        verify=fit_kind(times.nodes, times.verify, times.context, kind),
        other=float(np.average(times.other, weights=times.cycles)),
        errors=errors,
        nodes=tuple(np.unique(times.nodes).astype(int).tolist()),
        context=float(np.average(times.context, weights=times.cycles)),
    )


def _left_out(times: CycleTimes, serial_steps: int | None, kind: Kind) -> FloatArray:
    """Relative errors of each length's mean cycle time, predicted from the other lengths."""
    lengths = np.unique(times.drafted)
    if lengths.size < FEWEST_SIZES:
        return np.zeros(0)
    errors = []
    for length in lengths:
        out = times.drafted == length
        rest, left = times.select(~out), times.select(out)
        if np.unique(rest.nodes).size < 2:
            return np.zeros(0)
        predicted = _fit(rest, serial_steps, kind, ()).seconds(left.drafted, left.nodes, left.context)
        weights = left.cycles
        errors.append(np.average(predicted, weights=weights) / np.average(left.whole, weights=weights) - 1)
    return np.array(errors)


def _draft_columns(drafted: FloatArray, serial_steps: int | None) -> FloatArray:
    steps = drafted if serial_steps is None else np.minimum(drafted, serial_steps)
    return np.stack([np.ones_like(drafted), steps, (drafted > steps).astype(np.float64)], axis=-1)
