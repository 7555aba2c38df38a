"""One drafter's structures, every model fitted at one of them on some prompts and judged at all on the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gumiho_simulator.forecasting.holdout import hold_out
from gumiho_simulator.forecasting.judged import JudgedForecast, Summary, sum_up
from gumiho_simulator.forecasting.tau import canonical
from gumiho_simulator.forecasting.validation import judge_models
from gumiho_theory import InputError, Trace


@dataclass(frozen=True)
class TransferSummary(Summary):
    """One model's rows, summed up over the structures that it forecast, the one of the fit left out.

    `rank_correlation` is Kendall's tau-b between forecast and measured orders of all structures forecast, by speed
    where times are known, otherwise by tau; None with fewer than two. `regret` is the share of the best measured value
    (speed or tau) that the structure with the best forecast falls short by.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *("model", "forecasts", "median_abs_error", "worst_abs_error", "coverage", "mean_interval_score"),
        *("rank_correlation", "regret"),
    )

    model: str
    rank_correlation: float | None
    regret: float | None

    @property
    def mean_interval_score(self) -> float | None:
        """The mean of `JudgedForecast.interval_score`."""
        return self.interval_score


@dataclass(frozen=True)
class TransferValidation:
    """All rows, by model, then by structure, and a summary a model.

    Parameters
    ----------
    fit_structure
        Structure of the trace that was fitted.
    fit_prompts, holdout_prompts
        Prompt ids of both parts.
    ranked_by
        "speed" (tau over the measured mean time of a cycle) or "tau".
    """

    fit_structure: str
    rows: tuple[JudgedForecast, ...]
    summaries: tuple[TransferSummary, ...]
    fit_prompts: tuple[str, ...]
    holdout_prompts: tuple[str, ...]
    ranked_by: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values: rows and summaries as dicts, prompts as numbers of them."""
        return {
            "fit_structure": self.fit_structure,
            "rows": [row.to_json() for row in self.rows],
            "summaries": [one.to_json() for one in self.summaries],
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
    holdout, seed, models
        As in `gumiho_simulator.forecasting.validate`, which is this for the logged structure alone.

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
    split = hold_out(source, holdout, seed)
    tests = {name: trace.select(split.held) for name, trace in traces.items()}
    seconds = {name: _cycle_seconds(test) for name, test in tests.items()}
    times = {name: value for name, value in seconds.items() if value is not None}
    timed = len(times) == len(seconds)
    judged = judge_models(source.select(split.fit), tests, seed, models)
    summaries = (_summary(one.rows, fit_structure, times if timed else {}) for one in judged)
    return TransferValidation(
        fit_structure=fit_structure,
        rows=tuple(row for one in judged for row in one.rows),
        summaries=tuple(summaries),
        fit_prompts=split.fit,
        holdout_prompts=split.held,
        ranked_by="speed" if timed else "tau",
    )


def _cycle_seconds(trace: Trace) -> float | None:
    """Return the mean time of a cycle; None where any part was not measured."""
    whole = trace.draft_seconds + trace.verify_seconds + trace.other_seconds
    return float(whole.mean()) if whole.size and np.isfinite(whole).all() and whole.sum() > 0 else None


def _summary(rows: Sequence[JudgedForecast], fit_structure: str, seconds: Mapping[str, float]) -> TransferSummary:
    correlation, regret = ranking(rows, seconds)
    others = sum_up([row for row in rows if row.structure != fit_structure])
    return TransferSummary(**vars(others), model=rows[0].model, rank_correlation=correlation, regret=regret)


def ranking(rows: Sequence[JudgedForecast], seconds: Mapping[str, float]) -> tuple[float | None, float | None]:
    """Say how well one model's forecasts rank the structures: rank correlation and regret; see `TransferSummary`.

    By tau over the mean time `seconds` of a cycle of each structure, or by tau where it has none.
    """
    made = [row for row in rows if row.predicted is not None]
    if len(made) < 2:
        return None, None
    from scipy.stats import kendalltau

    times = np.array([seconds.get(row.structure, 1.0) for row in made])
    guessed = np.array([row.predicted for row in made], dtype=np.float64) / times
    found = np.array([row.measured for row in made]) / times
    statistic = float(kendalltau(guessed, found).statistic)
    regret = float(1 - found[int(np.argmax(guessed))] / found.max())
    return (statistic if np.isfinite(statistic) else None), regret
