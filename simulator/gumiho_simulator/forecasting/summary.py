"""What ``gumiho traces show`` prints: a trace or counts, summed up with clustered intervals."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.forecasting.expected import expected_tau
from gumiho_simulator.forecasting.intervals import Interval, rate_intervals, tau_interval
from gumiho_theory import AcceptanceCounts, Trace

FloatArray = NDArray[np.float64]


class LogWarning(UserWarning):
    """What was left out of a log, contradicted itself, or had to be read one way of several."""


def read_log(path: str | os.PathLike[str]) -> Trace | AcceptanceCounts:
    """Read a log of any format that `gumiho_simulator.importers` knows, told by its content.

    Parameters
    ----------
    path
        File to read: this toolkit's cycle trace (Parquet) or acceptance counts (JSON), or an engine's log.

    Returns
    -------
    Trace or AcceptanceCounts
        What the file holds, by this toolkit's conventions: accepted lengths without the bonus token, tau
        with it.

    Warns
    -----
    LogWarning
        For each thing that was wrong with the file and did not keep it from being read.

    Raises
    ------
    InputError
        The file cannot be read, is of no known format, or holds nothing usable.
    """
    from gumiho_simulator.importers import read

    reading = read(path)
    for note in reading.warnings:
        warnings.warn(f"{os.fspath(path)}: {note}", LogWarning, stacklevel=2)
    return reading.log


def summarize(log: Trace | AcceptanceCounts, seed: int = 0) -> dict[str, Any]:
    """Sum up a log: tau, rates by draft position, times.

    Parameters
    ----------
    log
        A cycle trace or counts.
    seed
        Seed of the resampling.

    Returns
    -------
    dict
        kind, cycles, prompts (the number of groups), clusters (what they are: prompts, intervals, ...), tau and tau_ci
        (bonus included, micro, over complete cycles; limits clustered by group or None), tau_convention, tau_macro
        (mean of per-group ratios), conditional, conditional_ci, survival, survival_ci, at_risk (by draft position; None
        where the log has none), mean_committed (tokens a cycle), censored_cycles, draft_ms and verify_ms (mean
        milliseconds a cycle; None where not measured), expected_tau, expected_tau_error and expected_tau_error_ci (what
        dynamic trees' own scores promised, less what they gave; None where the log does not say).
    """
    counts = log.counts_by_prompt() if isinstance(log, Trace) else log
    complete = counts.complete_cycles > 0
    per_prompt = 1 + counts.total_accepted[complete] / counts.complete_cycles[complete]
    rates = rate_summary(counts, seed) if counts.at_risk is not None and counts.at_risk.sum() else {}
    is_trace = isinstance(log, Trace)
    return {
        "kind": "cycles" if is_trace else "counts",
        "cycles": int(counts.cycles.sum()),
        "prompts": len(counts.groups),
        "clusters": counts.clusters,
        "tau": counts.tau(),
        "tau_ci": tau_interval(counts, np.random.default_rng(seed)),
        "tau_convention": "bonus included, micro",
        "tau_macro": float(per_prompt.mean()) if per_prompt.size else None,
        **{key: rates.get(key) for key in ("conditional", "conditional_ci", "survival", "survival_ci", "at_risk")},
        "mean_committed": float(log.committed.mean()) if isinstance(log, Trace) and log.n_cycles else None,
        "censored_cycles": int((counts.cycles - counts.complete_cycles).sum()),
        "draft_ms": mean_ms(log.draft_seconds) if isinstance(log, Trace) else None,
        "verify_ms": mean_ms(log.verify_seconds) if isinstance(log, Trace) else None,
        **_promised(log, seed),
    }


def _promised(log: Trace | AcceptanceCounts, seed: int) -> dict[str, Any]:
    found = expected_tau(log, np.random.default_rng(seed)) if isinstance(log, Trace) else None
    return {
        "expected_tau": found and found.expected,
        "expected_tau_error": found and found.expected - found.measured,
        "expected_tau_error_ci": None if found is None or found.lo is None else [found.lo, found.hi],
    }


def rate_summary(counts: AcceptanceCounts, seed: int = 0) -> dict[str, Any]:
    """Sum up the rates by draft position.

    Parameters
    ----------
    counts
        Counts with positions.
    seed
        Seed of the resampling.

    Returns
    -------
    dict
        conditional, conditional_ci, survival, survival_ci, at_risk: lists by position 1..D; an interval
        that cannot be had is None.

    Raises
    ------
    InputError
        The counts lack positions.
    """
    conditional, survival = rate_intervals(counts, np.random.default_rng(seed))
    return {
        "conditional": conditional.estimate.tolist(),
        "conditional_ci": _pairs(conditional),
        "survival": survival.estimate.tolist(),
        "survival_ci": _pairs(survival),
        "at_risk": [] if counts.at_risk is None else counts.at_risk.sum(axis=0).tolist(),
    }


def mean_ms(seconds: FloatArray) -> float | None:
    """Mean of measured times in milliseconds.

    Parameters
    ----------
    seconds : ndarray
        Seconds, nan where not measured.

    Returns
    -------
    float or None
        None when nothing was measured.
    """
    known = seconds[np.isfinite(seconds)]
    return float(known.mean() * 1000) if known.size else None


def _pairs(interval: Interval) -> list[list[float] | None]:
    return [
        [low, high] if np.isfinite(low) and np.isfinite(high) else None
        for low, high in zip(interval.low.tolist(), interval.high.tolist(), strict=True)
    ]
