"""The scoreboard of acceptance models: fitted at one structure on some prompts, judged at others on the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.acceptance import Observations
from gumiho_simulator.forecasting.fitting import fit, possible
from gumiho_simulator.forecasting.forecasts import Forecast, canonical, forecast
from gumiho_simulator.forecasting.intervals import LEVEL
from gumiho_simulator.forecasting.validation import lengths_by_prompt, sampling_errors, split_prompts
from gumiho_theory import EveryPositionLog, InputError, Trace

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TransferRow:
    """One model's forecast of one structure beside the measurement.

    Every tau has the bonus token included, is micro, and is over complete cycles.

    Parameters
    ----------
    model, structure
        What was forecast.
    predicted, lo, hi
        Forecast tau and its 95 % limits; None when refused.
    measured
        tau of the held-out prompts, run with this structure.
    relative_error
        (predicted - measured) / measured, signed; None when refused.
    inside
        Whether measured lies within the limits; None without limits.
    interval_score
        Width of the interval plus 40 times the distance by which measured lies outside, over measured (Gneiting and
        Raftery, 2007); lower is better. None without limits.
    total_variation
        Distance between forecast and measured laws of L, half the sum of absolute differences; None when refused.
    sampling_floor
        Median relative error that a perfect model would have here, by resampling the held-out prompts.
    sampling_floor_95
        The error that a perfect model would exceed one time in twenty.
    supported
        Whether the log reached every position asked for.
    note
        Reason of a refusal, or what the reader has to know; may be empty.
    """

    model: str
    structure: str
    predicted: float | None
    lo: float | None
    hi: float | None
    measured: float
    relative_error: float | None
    inside: bool | None
    interval_score: float | None
    total_variation: float | None
    sampling_floor: float | None
    sampling_floor_95: float | None
    supported: bool
    note: str


@dataclass(frozen=True)
class TransferSummary:
    """One model's rows, summed up over the structures that it forecast, the one of the fit left out.

    Parameters
    ----------
    model
        Its name.
    forecasts
        Number of structures forecast.
    median_abs_error, worst_abs_error
        Of the relative errors of tau.
    coverage
        Share of intervals that hold the measurement.
    mean_interval_score
        See `TransferRow`.
    rank_correlation
        Kendall's tau-b between forecast and measured orders of all structures forecast, by speed where times are known,
        otherwise by tau; None with fewer than two.
    regret
        Share of the best measured value (speed or tau) that the structure with the best forecast falls short by.
    """

    model: str
    forecasts: int
    median_abs_error: float | None
    worst_abs_error: float | None
    coverage: float | None
    mean_interval_score: float | None
    rank_correlation: float | None
    regret: float | None


@dataclass(frozen=True)
class TransferValidation:
    """All rows, and a summary a model.

    Parameters
    ----------
    fit_structure
        Structure of the trace that was fitted.
    rows, summaries
        By model, then by structure.
    fit_prompts, holdout_prompts
        Prompt ids of both parts.
    ranked_by
        "speed" (tau over the measured mean time of a cycle) or "tau".
    """

    fit_structure: str
    rows: tuple[TransferRow, ...]
    summaries: tuple[TransferSummary, ...]
    fit_prompts: tuple[str, ...]
    holdout_prompts: tuple[str, ...]
    ranked_by: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values: rows and summaries as dicts, prompts as numbers of them."""
        return {
            "fit_structure": self.fit_structure,
            "rows": [dict(vars(row)) for row in self.rows],
            "summaries": [dict(vars(one)) for one in self.summaries],
            "fit_prompts": len(self.fit_prompts),
            "holdout_prompts": len(self.holdout_prompts),
            "ranked_by": self.ranked_by,
        }


def score_transfers(
    traces: Mapping[str, Trace],
    fit_structure: str,
    holdout: float = 0.5,
    seed: int = 0,
    models: Sequence[str] | None = None,
) -> TransferValidation:
    """Fit every model at one structure on some prompts and forecast each structure on the others.

    Parameters
    ----------
    traces
        Traces of one drafter on the same prompts, by structure text.
    fit_structure
        The one to fit.
    holdout
        Share of the prompts to hold out, of each task as nearly as whole prompts allow; in (0, 1).
    seed
        Seed of the split and of the resampling.
    models
        Names of the models; by default all that the fitted trace has everything for.

    Returns
    -------
    TransferValidation
        Forecasts and measurements; tau with the bonus included, micro, over complete cycles.

    Raises
    ------
    InputError
        No trace of `fit_structure`, traces of different prompts, a share outside (0, 1), too few prompts for two on
        both sides, or a structure without a complete held-out cycle.
    """
    traces = {canonical(name): trace for name, trace in traces.items()}
    fit_structure = canonical(fit_structure)
    if fit_structure not in traces:
        raise InputError("fit structure", fit_structure, f"one of {', '.join(traces)}")
    source = traces[fit_structure]
    for name, trace in traces.items():
        if set(trace.prompts) != set(source.prompts):
            raise InputError(f"prompts of the {name} trace", len(trace.prompts), f"the prompts of {fit_structure}")
    held = hold_out(source, holdout, seed)
    _, *floors = np.random.default_rng(seed).spawn(1 + len(traces))
    fit_prompts = tuple(prompt for prompt in source.prompts if prompt not in held)
    holdout_prompts = tuple(prompt for prompt in source.prompts if prompt in held)
    if min(len(fit_prompts), len(holdout_prompts)) < 2:
        found = f"{len(fit_prompts)} to fit and {len(holdout_prompts)} held out"
        raise InputError("prompts", found, "at least two of each")

    train = source.select(fit_prompts)
    tests = {name: trace.select(holdout_prompts) for name, trace in traces.items()}
    floor = {name: sampling_errors(test, rng) for (name, test), rng in zip(tests.items(), floors, strict=True)}
    names = tuple(models) if models is not None else possible(Observations.of(train))
    rows: list[TransferRow] = []
    summaries: list[TransferSummary] = []
    seconds = {name: _cycle_seconds(test) for name, test in tests.items()}
    timed = all(value is not None for value in seconds.values())
    for model in names:
        made = forecast(fit(train, model), list(traces), len(holdout_prompts), seed)
        own = [transfer_row(one, tests[one.structure], floor[one.structure]) for one in made]
        rows.extend(own)
        summaries.append(transfer_summary(model, own, fit_structure, seconds if timed else {}))
    return TransferValidation(
        fit_structure, tuple(rows), tuple(summaries), fit_prompts, holdout_prompts, "speed" if timed else "tau"
    )


def hold_out(log: Trace | EveryPositionLog, holdout: float, seed: int) -> frozenset[str]:
    """Choose the prompts that `score_transfers` holds out of a log with this seed.

    Parameters
    ----------
    log
        A cycle trace, or an every-position log.
    holdout
        Share of the prompts, of each task as nearly as whole prompts allow; in (0, 1).
    seed
        Seed of the split.

    Raises
    ------
    InputError
        A share outside (0, 1).
    """
    if not 0 < holdout < 1:
        raise InputError("holdout", holdout, "a share between 0 and 1")
    return split_prompts(log, holdout, np.random.default_rng(seed).spawn(1)[0])


def _cycle_seconds(trace: Trace) -> float | None:
    """Return the mean time of a cycle; None where any part was not measured."""
    whole = trace.draft_seconds + trace.verify_seconds + trace.other_seconds
    return float(whole.mean()) if whole.size and np.isfinite(whole).all() and whole.sum() > 0 else None


def transfer_row(one: Forecast, test: Trace | float, floor: FloatArray | None) -> TransferRow:
    """Put a forecast beside a measurement.

    Parameters
    ----------
    one
        The forecast.
    test
        The held-out prompts' cycles, run with its structure; or tau alone (bonus included), where no more is known.
    floor : ndarray, optional
        Errors that a perfect model would have; see `sampling_errors`.

    Raises
    ------
    InputError
        The held-out prompts have no complete cycle.
    """
    measured = test if isinstance(test, float) else test.tau()
    if measured is None:
        raise InputError(f"held-out prompts of {one.structure}", "no complete cycle", "at least one")
    score = distance = None
    if one.lo is not None and one.hi is not None:
        outside = max(one.lo - measured, measured - one.hi, 0.0)
        score = (one.hi - one.lo + 2 / (1 - LEVEL) * outside) / measured
    if one.pmf is not None and not isinstance(test, float):
        depth = max(test.depth, len(one.pmf) - 1)
        counts = lengths_by_prompt(test, depth).sum(axis=0)
        law = np.pad(np.array(one.pmf), (0, depth + 1 - len(one.pmf)))
        distance = 0.5 * float(np.abs(law - counts / counts.sum()).sum())
    return TransferRow(
        model=one.model,
        structure=one.structure,
        predicted=one.tau,
        lo=one.lo,
        hi=one.hi,
        measured=measured,
        relative_error=None if one.tau is None else (one.tau - measured) / measured,
        inside=None if one.lo is None or one.hi is None else one.lo <= measured <= one.hi,
        interval_score=score,
        total_variation=distance,
        sampling_floor=None if floor is None else float(np.median(floor)),
        sampling_floor_95=None if floor is None else float(np.quantile(floor, LEVEL)),
        supported=one.supported,
        note=one.note,
    )


def transfer_summary(
    model: str, rows: Sequence[TransferRow], fit_structure: str, seconds: Mapping[str, float | None]
) -> TransferSummary:
    """Sum up one model's rows.

    Parameters
    ----------
    model
        Its name.
    rows
        Its rows.
    fit_structure
        Left out of the errors, not of the ranking.
    seconds
        Mean time of a cycle by structure; without it structures are ranked by tau.
    """
    others = [row for row in rows if row.structure != fit_structure]
    errors = [abs(row.relative_error) for row in others if row.relative_error is not None]
    inside = [row.inside for row in others if row.inside is not None]
    scores = [row.interval_score for row in others if row.interval_score is not None]
    correlation = regret = None
    made = [row for row in rows if row.predicted is not None]
    if len(made) >= 2:
        from scipy.stats import kendalltau

        times = np.array([seconds.get(row.structure) or 1.0 for row in made])
        guessed = np.array([row.predicted for row in made], dtype=np.float64) / times
        found = np.array([row.measured for row in made]) / times
        statistic = float(kendalltau(guessed, found).statistic)
        correlation = statistic if np.isfinite(statistic) else None
        regret = float(1 - found[int(np.argmax(guessed))] / found.max())
    return TransferSummary(
        model=model,
        forecasts=len(errors),
        median_abs_error=float(np.median(errors)) if errors else None,
        worst_abs_error=max(errors, default=None),
        coverage=sum(inside) / len(inside) if inside else None,
        mean_interval_score=float(np.mean(scores)) if scores else None,
        rank_correlation=correlation,
        regret=regret,
    )
