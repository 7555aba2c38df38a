"""A forecast beside what was measured: its errors, the worth of its interval, and many of them summed up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gumiho_simulator.forecasting.intervals import LEVEL
from gumiho_simulator.forecasting.results import Row
from gumiho_simulator.forecasting.tau import Forecast
from gumiho_theory import InputError, Trace
from gumiho_theory.logs.schema import group_codes
from gumiho_theory.types import FloatArray


@dataclass(frozen=True)
class JudgedForecast(Row):
    """One model's forecast of one structure beside the measurement.

    Every tau has the bonus token included, is micro, and is over complete cycles.

    Parameters
    ----------
    model, structure, supported, note
        As in `Forecast`.
    predicted, lo, hi
        Forecast tau and its 95 % limits; None when refused.
    measured
        tau of the held-out prompts, run with this structure; or as published.
    total_variation
        Distance between forecast and measured distributions of L, half the sum of absolute differences; None where
        either is unknown.
    sampling_floor, sampling_floor_95
        Median absolute relative error that a perfect model would have here, by resampling the held-out prompts, and the
        error that it would exceed one time in twenty; None without prompts, or with few.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *("model", "structure", "predicted", "lo", "hi", "measured", "relative_error", "inside", "interval_score"),
        *("total_variation", "sampling_floor", "sampling_floor_95", "supported", "note"),
    )

    model: str
    structure: str
    predicted: float | None
    lo: float | None
    hi: float | None
    measured: float
    total_variation: float | None
    sampling_floor: float | None
    sampling_floor_95: float | None
    supported: bool
    note: str

    @property
    def relative_error(self) -> float | None:
        """(predicted - measured) / measured, signed; None when refused."""
        return None if self.predicted is None else (self.predicted - self.measured) / self.measured

    @property
    def inside(self) -> bool | None:
        """Whether measured lies within the limits; None without limits."""
        return None if self.lo is None or self.hi is None else self.lo <= self.measured <= self.hi

    @property
    def interval_score(self) -> float | None:
        """Width of the interval plus 40 times the distance by which measured lies outside, over measured.

        Lower is better (Gneiting and Raftery, 2007). None without limits.
        """
        if self.lo is None or self.hi is None:
            return None
        outside = max(self.lo - self.measured, self.measured - self.hi, 0.0)
        return (self.hi - self.lo + 2 / (1 - LEVEL) * outside) / self.measured

    @property
    def relative_width(self) -> float | None:
        """(hi - lo) / measured; None without limits."""
        return None if self.lo is None or self.hi is None else (self.hi - self.lo) / self.measured


def judge(one: Forecast, test: Trace | float, floor: FloatArray | None) -> JudgedForecast:
    """Put a forecast beside a measurement; InputError where the held-out prompts have no complete cycle.

    `test` holds the held-out prompts' cycles, run with its structure; or tau alone (bonus included), where no more is
    known. `floor` are the errors that a perfect model would have; see `sampling_errors`.
    """
    measured = test if isinstance(test, float) else test.tau()
    if measured is None:
        raise InputError(f"held-out prompts of {one.structure}", "no complete cycle", "at least one")
    distance = None
    if one.pmf is not None and not isinstance(test, float):
        depth = max(test.depth, len(one.pmf) - 1)
        counts = lengths_by_prompt(test, depth).sum(axis=0)
        made = np.pad(np.array(one.pmf), (0, depth + 1 - len(one.pmf)))
        distance = 0.5 * float(np.abs(made - counts / counts.sum()).sum())
    return JudgedForecast(
        model=one.model,
        structure=one.structure,
        predicted=one.tau,
        lo=one.lo,
        hi=one.hi,
        measured=measured,
        total_variation=distance,
        sampling_floor=None if floor is None else float(np.median(floor)),
        sampling_floor_95=None if floor is None else float(np.quantile(floor, LEVEL)),
        supported=one.supported,
        note=one.note,
    )


def lengths_by_prompt(trace: Trace, depth: int) -> FloatArray:
    """Count complete cycles with L = 0..depth by prompt, in order of appearance, [G, depth + 1]."""
    table = np.zeros((len(trace.prompts), depth + 1))
    rows = group_codes(trace.prompt_id)
    np.add.at(table, (rows[trace.complete], trace.accepted[trace.complete]), 1)
    return table


@dataclass(frozen=True)
class Summary(Row):
    """Judged forecasts summed up; each number is None where no row has it.

    `forecasts` and `refused` count rows with a forecast and without; the errors are of tau, relative. The floor is the
    median of rows with a forecast, `sampling_floor_95` the largest; `coverage` the share of intervals that hold the
    measurement; width, score and total variation are means.
    """

    forecasts: int
    refused: int
    median_abs_error: float | None
    worst_abs_error: float | None
    sampling_floor: float | None
    sampling_floor_95: float | None
    coverage: float | None
    relative_width: float | None
    interval_score: float | None
    total_variation: float | None


def sum_up(rows: Sequence[JudgedForecast]) -> Summary:
    """Sum up any rows."""
    errors = [abs(error) for error in known(row.relative_error for row in rows)]
    made = [row for row in rows if row.predicted is not None]
    floors = known(row.sampling_floor for row in made)
    inside = [row.inside for row in rows if row.inside is not None]
    return Summary(
        forecasts=len(errors),
        refused=len(rows) - len(errors),
        median_abs_error=float(np.median(errors)) if errors else None,
        worst_abs_error=max(errors, default=None),
        sampling_floor=float(np.median(floors)) if floors else None,
        sampling_floor_95=max(known(row.sampling_floor_95 for row in made), default=None),
        coverage=sum(inside) / len(inside) if inside else None,
        relative_width=mean(row.relative_width for row in rows),
        interval_score=mean(row.interval_score for row in rows),
        total_variation=mean(row.total_variation for row in rows),
    )


def known(values: Iterable[float | None]) -> list[float]:
    """Return the numbers without those that are None."""
    return [value for value in values if value is not None]


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the numbers that are not None; None of nothing."""
    numbers = known(values)
    return float(np.mean(numbers)) if numbers else None
