"""Fit on some prompts, forecast the others, compare with what they measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_simulator.acceptance import Observations
from gumiho_simulator.forecasting.fitting import FitResult, fit, possible
from gumiho_simulator.forecasting.holdout import hold_out, sampling_errors
from gumiho_simulator.forecasting.intervals import Interval, pmf_intervals
from gumiho_simulator.forecasting.judged import JudgedForecast, judge, lengths_by_prompt, sum_up
from gumiho_simulator.forecasting.tau import Forecast, forecast
from gumiho_theory import ChainStructure, InputError, Trace

_COLUMNS = ("model", "structure", "predicted", "lo", "hi", "measured", "relative_error", "inside")


@dataclass(frozen=True)
class Validation:
    """A prompt-wise hold-out, a row a model.

    Parameters
    ----------
    sampling_floor
        Median relative error that a perfect model would have with that many held-out prompts, by resampling them; None
        with fewer than five that hold a complete cycle.
    fits, forecasts
        The fit of each model and its forecast, in the order of `rows`.
    fit_prompts, holdout_prompts
        Prompt ids of both parts, in order of appearance.
    measured_pmf
        P(L = 0..D) of the held-out prompts' complete cycles, with prompt-clustered 95 % limits.
    holdout, seed
        Share held out, and the seed of the split and of all resampling.
    """

    rows: tuple[JudgedForecast, ...]
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
        return sum_up(self.rows).median_abs_error

    @property
    def worst_abs_error(self) -> float | None:
        """Largest absolute relative error over the rows that have one."""
        return sum_up(self.rows).worst_abs_error

    @property
    def coverage(self) -> float | None:
        """Share of rows with an interval whose interval holds the measurement."""
        return sum_up(self.rows).coverage

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho validate --json`` prints; of the prompts, their numbers."""
        return {
            "rows": [{name: getattr(row, name) for name in _COLUMNS} for row in self.rows],
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
        A cycle trace; its provenance names the structure (a chain as deep as the deepest draft when it does not).
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
        `holdout` outside (0, 1), an unknown model, too few prompts for two on both sides, or no held-out cycle whose
        accepted length is known in full.
    """
    split = hold_out(trace, holdout, seed)
    train, test = trace.select(split.fit), trace.select(split.held)
    if test.tau() is None:
        raise InputError("held-out prompts", "no complete cycle", "at least one cycle that no stop cut short")
    logged = trace.provenance.get("structure")
    structure = logged if isinstance(logged, str) else str(ChainStructure(trace.depth))
    if structure.startswith("chain:") and int(structure.removeprefix("chain:")) < trace.depth:
        wanted = f"at least chain:{trace.depth}, as deep as the drafts of the trace"
        raise InputError("structure of the trace's provenance", structure, wanted)
    judged = judge_models(train, {structure: test}, seed, models)
    rows = tuple(row for one in judged for row in one.rows)
    pmf_generator = np.random.default_rng(seed).spawn(3)[2]  # the others split the prompts and drew the floor
    return Validation(
        rows=rows,
        sampling_floor=rows[0].sampling_floor if rows else None,
        fits=tuple(one.fit for one in judged),
        forecasts=tuple(made for one in judged for made in one.forecasts),
        fit_prompts=split.fit,
        holdout_prompts=split.held,
        measured_pmf=pmf_intervals(lengths_by_prompt(test, trace.depth), pmf_generator),
        holdout=holdout,
        seed=seed,
    )


@dataclass(frozen=True)
class JudgedModel:
    """One model fitted to some prompts: its forecast of each structure, and the same beside what others measured."""

    fit: FitResult
    forecasts: tuple[Forecast, ...]
    rows: tuple[JudgedForecast, ...]


def judge_models(
    train: Trace, tests: Mapping[str, Trace], seed: int, models: Sequence[str] | None = None
) -> tuple[JudgedModel, ...]:
    """Fit models to some prompts at one structure and judge their forecasts of several structures on the others.

    `tests` are the other prompts' cycles by structure, `models` by default all that `train` has everything for. The
    seed is that of the intervals and, in a stream of its own a structure, of the sampling floor. InputError for an
    unknown model, or a structure without a complete cycle in its test.
    """
    _, *generators = np.random.default_rng(seed).spawn(1 + len(tests))
    floors = {name: sampling_errors(test, rng) for (name, test), rng in zip(tests.items(), generators, strict=True)}
    judged = []
    for model in models if models is not None else possible(Observations.of(train)):
        fitted = fit(train, model)
        made = forecast(fitted, list(tests), len(next(iter(tests.values())).prompts), seed)
        rows = (judge(one, tests[name], floors[name]) for name, one in zip(tests, made, strict=True))
        judged.append(JudgedModel(fitted, made, tuple(rows)))
    return tuple(judged)
