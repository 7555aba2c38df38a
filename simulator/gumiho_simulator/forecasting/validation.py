"""Fit on some prompts, forecast the others, compare with what they measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.acceptance import Observations
from gumiho_simulator.forecasting.fitting import FitResult, fit, possible
from gumiho_simulator.forecasting.forecasts import Forecast, forecast
from gumiho_simulator.forecasting.intervals import Interval, pmf_intervals
from gumiho_theory import ChainStructure, EveryPositionLog, InputError, Trace

FloatArray = NDArray[np.float64]

_FEWEST = 5
_FLOOR_RESAMPLES = 4000


@dataclass(frozen=True)
class ValidationRow:
    """One model's forecast beside the measurement.

    Every tau has the bonus token included, is micro, and is over complete cycles.

    Parameters
    ----------
    model, structure
        What was forecast.
    predicted, lo, hi
        Forecast tau and its 95 % limits; None when refused.
    measured
        tau of the held-out prompts.
    relative_error
        (predicted - measured) / measured, signed; None when refused.
    inside
        Whether measured lies within the limits; None without limits.
    """

    model: str
    structure: str
    predicted: float | None
    lo: float | None
    hi: float | None
    measured: float
    relative_error: float | None
    inside: bool | None

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values.

        Returns
        -------
        dict
            One key a field.
        """
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Validation:
    """A prompt-wise hold-out.

    Parameters
    ----------
    rows
        One row a model.
    sampling_floor
        Median relative error that a perfect model would have with that many held-out prompts, by resampling
        them; None with fewer than two that hold a complete cycle.
    fits, forecasts
        The fit of each model and its forecast, in the order of `rows`.
    fit_prompts, holdout_prompts
        Prompt ids of both parts, in order of appearance.
    measured_pmf
        P(L = 0..D) of the held-out prompts' complete cycles, with prompt-clustered 95 % limits.
    holdout, seed
        Share held out, and the seed of the split and of all resampling.
    """

    rows: tuple[ValidationRow, ...]
    sampling_floor: float | None
    fits: tuple[FitResult, ...]
    forecasts: tuple[Forecast, ...]
    fit_prompts: tuple[str, ...]
    holdout_prompts: tuple[str, ...]
    measured_pmf: Interval
    holdout: float
    seed: int

    @property
    def median_abs_error(self) -> float | None:
        """Median absolute relative error over the rows that have one."""
        errors = self._errors()
        return float(np.median(errors)) if errors else None

    @property
    def worst_abs_error(self) -> float | None:
        """Largest absolute relative error over the rows that have one."""
        return max(self._errors(), default=None)

    @property
    def coverage(self) -> float | None:
        """Share of rows with an interval whose interval holds the measurement."""
        inside = [row.inside for row in self.rows if row.inside is not None]
        return sum(inside) / len(inside) if inside else None

    def _errors(self) -> list[float]:
        return [abs(row.relative_error) for row in self.rows if row.relative_error is not None]

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho validate --json`` prints.

        Returns
        -------
        dict
            Keys rows, median_abs_error, worst_abs_error, sampling_floor, coverage, fit_prompts,
            holdout_prompts (numbers of prompts), holdout, seed.
        """
        return {
            "rows": [row.to_json() for row in self.rows],
            "median_abs_error": self.median_abs_error,
            "worst_abs_error": self.worst_abs_error,
            "sampling_floor": self.sampling_floor,
            "coverage": self.coverage,
            "fit_prompts": len(self.fit_prompts),
            "holdout_prompts": len(self.holdout_prompts),
            "holdout": self.holdout,
            "seed": self.seed,
        }


def validate(trace: Trace, holdout: float = 0.5, seed: int = 0, models: Sequence[str] | None = None) -> Validation:
    """Fit each model on some prompts and forecast tau of the others, for the structure that was logged.

    Parameters
    ----------
    trace
        A cycle trace; its provenance names the structure (a chain as deep as the deepest draft when it does
        not).
    holdout
        Share of the prompts to hold out, of each task as nearly as whole prompts allow; in (0, 1).
    seed
        Seed of the split and of the resampling.
    models
        Names of the models; by default all that the trace has everything for.

    Returns
    -------
    Validation
        Forecasts and measurements; tau with the bonus included, micro, over complete cycles.

    Raises
    ------
    InputError
        `holdout` outside (0, 1), an unknown model, too few prompts for two on both sides, or no held-out
        cycle whose accepted length is known in full.
    """
    if not 0 < holdout < 1:
        raise InputError("holdout", holdout, "a share between 0 and 1")
    split_generator, floor_generator, pmf_generator = np.random.default_rng(seed).spawn(3)
    held = split_prompts(trace, holdout, split_generator)
    fit_prompts = tuple(prompt for prompt in trace.prompts if prompt not in held)
    holdout_prompts = tuple(prompt for prompt in trace.prompts if prompt in held)
    if min(len(fit_prompts), len(holdout_prompts)) < 2:
        found = f"{len(fit_prompts)} to fit and {len(holdout_prompts)} held out"
        raise InputError("prompts", found, "at least two of each")

    train, test = trace.select(fit_prompts), trace.select(holdout_prompts)
    measured = test.tau()
    if measured is None:
        raise InputError("held-out prompts", "no complete cycle", "at least one cycle that no stop cut short")
    logged = trace.provenance.get("structure")
    structure = logged if isinstance(logged, str) else str(ChainStructure(trace.depth))
    if structure.startswith("chain:") and int(structure.removeprefix("chain:")) < trace.depth:
        wanted = f"at least chain:{trace.depth}, as deep as the drafts of the trace"
        raise InputError("structure of the trace's provenance", structure, wanted)
    names = models if models is not None else possible(Observations.of(train))
    fits = tuple(fit(train, name) for name in names)
    forecasts = tuple(forecast(one, [structure], len(holdout_prompts), seed)[0] for one in fits)
    return Validation(
        rows=tuple(_row(one, measured) for one in forecasts),
        sampling_floor=sampling_floor(test, floor_generator),
        fits=fits,
        forecasts=forecasts,
        fit_prompts=fit_prompts,
        holdout_prompts=holdout_prompts,
        measured_pmf=pmf_intervals(lengths_by_prompt(test, trace.depth), pmf_generator),
        holdout=holdout,
        seed=seed,
    )


def split_prompts(trace: Trace | EveryPositionLog, holdout: float, generator: np.random.Generator) -> frozenset[str]:
    """Choose the prompts to hold out, stratified by task.

    Parameters
    ----------
    trace
        A cycle trace, or an every-position log.
    holdout
        Share to hold out.
    generator
        Source of randomness.

    Returns
    -------
    frozenset of str
        Prompt ids; of each task the share rounded down or up, in all the share rounded to a whole prompt.
    """
    by_task: dict[str, list[str]] = {}
    for prompt, task in dict(zip(trace.prompt_id[::-1], trace.task[::-1], strict=True)).items():
        by_task.setdefault(task or "", []).append(prompt)
    # Lay the shuffled tasks end to end and hold out each prompt whose stretch crosses the next whole number
    # of held-out prompts: every task gets its share to within one, and the total is right too.
    order: list[str] = []
    for task in generator.permutation(sorted(by_task)):
        order.extend(generator.permutation(sorted(by_task[str(task)])).tolist())
    crossed = np.floor(np.arange(len(order) + 1) * holdout + 0.5)
    return frozenset(prompt for prompt, step in zip(order, np.diff(crossed), strict=True) if step > 0)


def lengths_by_prompt(trace: Trace, depth: int) -> FloatArray:
    """Count complete cycles by prompt and accepted length.

    Parameters
    ----------
    trace
        A cycle trace.
    depth
        Deepest accepted length to make room for.

    Returns
    -------
    ndarray [G, depth + 1]
        Number of cycles with L = 0..depth, prompts in order of appearance.
    """
    place = {prompt: index for index, prompt in enumerate(trace.prompts)}
    table = np.zeros((len(place), depth + 1))
    rows = np.array([place[prompt] for prompt in trace.prompt_id], dtype=np.int64)
    np.add.at(table, (rows[trace.complete], trace.accepted[trace.complete]), 1)
    return table


def sampling_floor(test: Trace, generator: np.random.Generator) -> float | None:
    """Median relative error of tau that a perfect model would have, by resampling prompts.

    Parameters
    ----------
    test
        Held-out prompts.
    generator
        Source of randomness.

    Returns
    -------
    float or None
        None with fewer than two prompts that hold a complete cycle.
    """
    errors = sampling_errors(test, generator)
    return None if errors is None else float(np.median(errors))


def sampling_errors(test: Trace, generator: np.random.Generator) -> FloatArray | None:
    """Draw absolute relative errors of tau that a perfect model would have, by resampling prompts.

    Parameters
    ----------
    test
        Held-out prompts.
    generator
        Source of randomness.

    Returns
    -------
    ndarray or None
        4,000 errors; None with fewer than five prompts that hold a complete cycle, which would often be drawn as they
        are: no error at all would look likely.
    """
    counts = test.counts_by_prompt()
    complete = counts.complete_cycles.astype(np.float64)
    total = counts.total_accepted[complete > 0].astype(np.float64)
    complete = complete[complete > 0]
    n = complete.size
    if n < _FEWEST:
        return None
    weights = generator.multinomial(n, np.full(n, 1 / n), _FLOOR_RESAMPLES).astype(np.float64)
    resampled = 1 + (weights @ total) / (weights @ complete)
    whole = 1 + total.sum() / complete.sum()
    # Resampling n prompts understates the spread by (n - 1) / n.
    errors: FloatArray = np.abs(resampled / whole - 1) * np.sqrt(n / (n - 1))
    return errors


def _row(one: Forecast, measured: float) -> ValidationRow:
    return ValidationRow(
        model=one.model,
        structure=one.structure,
        predicted=one.tau,
        lo=one.lo,
        hi=one.hi,
        measured=measured,
        relative_error=None if one.tau is None else (one.tau - measured) / measured,
        inside=None if one.lo is None or one.hi is None else one.lo <= measured <= one.hi,
    )
