"""A log of any known format read, and summed up with clustered intervals: tau, rates by draft position, times."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_simulator.forecasting.expected import expected_tau
from gumiho_simulator.forecasting.intervals import Interval, rate_intervals, tau_interval
from gumiho_simulator.forecasting.results import Row
from gumiho_theory import AcceptanceCounts, Trace
from gumiho_theory.types import FloatArray

Limits = list[list[float] | None]


class LogWarning(UserWarning):
    """What was left out of a log, contradicted itself, or had to be read one way of several."""


def read_log(path: str | os.PathLike[str]) -> Trace | AcceptanceCounts:
    """Read a log of any format that `gumiho_simulator.importers` knows, told by its content.

    Parameters
    ----------
    path
        This toolkit's cycle trace (Parquet) or acceptance counts (JSON), or an engine's log.

    Returns
    -------
    Trace or AcceptanceCounts
        By this toolkit's conventions: accepted lengths without the bonus token, tau with it.

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


@dataclass(frozen=True)
class LogSummary(Row):
    """What ``gumiho traces show`` says of a log; lists go by draft position 1..D.

    Parameters
    ----------
    kind
        "cycles" or "counts".
    cycles, prompts, clusters
        Numbers of cycles and of groups, and what the groups are: prompts, intervals, ...
    tau, tau_ci, tau_macro
        Over complete cycles (see `tau_convention`), with 95 % limits, groups resampled; and the mean of the groups'
        own. None where it cannot be had.
    conditional, conditional_ci, survival, survival_ci, at_risk
        Rates with their limits, and cycles at risk; None where the log has no positions, and so a single interval that
        cannot be had.
    mean_committed
        Tokens a cycle; None of counts.
    censored_cycles
        Cycles whose accepted length is not known in full.
    draft_ms, verify_ms
        Mean milliseconds a cycle; None where not measured.
    expected_tau, expected_tau_error, expected_tau_error_ci
        What dynamic trees' own scores promised, and by how much more than they gave; None where the log does not say.
    """

    kind: str
    cycles: int
    prompts: int
    clusters: str
    tau: float | None
    tau_ci: tuple[float, float] | None
    tau_convention: str
    tau_macro: float | None
    conditional: list[float] | None
    conditional_ci: Limits | None
    survival: list[float] | None
    survival_ci: Limits | None
    at_risk: list[int] | None
    mean_committed: float | None
    censored_cycles: int
    draft_ms: float | None
    verify_ms: float | None
    expected_tau: float | None
    expected_tau_error: float | None
    expected_tau_error_ci: tuple[float, float] | None


def summarize(log: Trace | AcceptanceCounts, seed: int = 0) -> LogSummary:
    """Sum up a log: tau (bonus included, micro), rates by draft position, times."""
    trace = log if isinstance(log, Trace) else None
    counts = log.counts_by_prompt() if isinstance(log, Trace) else log
    complete = counts.complete_cycles > 0
    per_prompt = 1 + counts.total_accepted[complete] / counts.complete_cycles[complete]
    rates: dict[str, Any] = dict.fromkeys(("conditional", "conditional_ci", "survival", "survival_ci", "at_risk"))
    if counts.at_risk is not None and counts.at_risk.sum():
        conditional, survival = rate_intervals(counts, np.random.default_rng(seed))
        rates = {"conditional": conditional.estimate.tolist(), "conditional_ci": _pairs(conditional)}
        rates |= {"survival": survival.estimate.tolist(), "survival_ci": _pairs(survival)}
        rates |= {"at_risk": counts.at_risk.sum(axis=0).tolist()}
    promised = None if trace is None else expected_tau(trace, np.random.default_rng(seed))
    return LogSummary(
        kind="counts" if trace is None else "cycles",
        cycles=int(counts.cycles.sum()),
        prompts=len(counts.groups),
        clusters=counts.clusters,
        tau=counts.tau(),
        tau_ci=tau_interval(counts, np.random.default_rng(seed)),
        tau_convention="bonus included, micro",
        tau_macro=float(per_prompt.mean()) if per_prompt.size else None,
        **rates,
        mean_committed=float(trace.committed.mean()) if trace is not None and trace.n_cycles else None,
        censored_cycles=int((counts.cycles - counts.complete_cycles).sum()),
        draft_ms=None if trace is None else _mean_ms(trace.draft_seconds),
        verify_ms=None if trace is None else _mean_ms(trace.verify_seconds),
        expected_tau=None if promised is None else promised.expected,
        expected_tau_error=None if promised is None else promised.expected - promised.measured,
        expected_tau_error_ci=None if promised is None else promised.error_ci,
    )


def _mean_ms(seconds: FloatArray) -> float | None:
    """Mean of the measured times, those that are not nan, in milliseconds."""
    known = seconds[np.isfinite(seconds)]
    return float(known.mean() * 1000) if known.size else None


def _pairs(interval: Interval) -> Limits:
    return [
        [low, high] if np.isfinite(low) and np.isfinite(high) else None
        for low, high in zip(interval.low.tolist(), interval.high.tolist(), strict=True)
    ]
