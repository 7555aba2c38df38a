"""What a scoreboard holds: one row a forecast beside its measurement, and summaries of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_simulator.scoreboard.transfers import TransferRow

SAME, CHAIN, STATIC, DYNAMIC = "same", "chain", "static tree", "dynamic tree"
REPLAY, TRACE, PUBLISHED = "replay", "trace", "published"
# What to ask for each kind of structure: the summary "advised".
ADVISED = {CHAIN: "hmm", STATIC: "rank", DYNAMIC: "replay"}


@dataclass(frozen=True)
class ScoreRow:
    """One forecast. Every tau has the bonus token included, is micro, and is over complete cycles.

    Parameters
    ----------
    source
        "replay" (an every-position log), "trace" (cycle traces) or "published" (tau by draft length alone).
    log
        File or curve.
    seed
        Of the split of the prompts; None where there is none.
    model
        Acceptance model; "replay": the structure replayed on the other prompts' every position; "scores": what the
        drafter's own scores promised; "points", "ratio": from published points, and by a constant ratio of gains.
    fitted_on
        What the model was fitted on, always of other prompts than the measurement.
    structure, kind
        What was forecast: its text, and chain, static tree, dynamic tree, or same: the structure that was fitted.
    measured
        tau of the held-out prompts, or as published.
    forecast, lo, hi
        tau and its 95 % limits; None when refused.
    relative_error
        (forecast - measured) / measured.
    sampling_floor, sampling_floor_95
        Absolute relative error that a perfect model would show with these held-out prompts: its median, and what it
        exceeds one time in twenty. None without prompts.
    inside
        Whether measured lies within the limits.
    interval_score
        See `TransferRow`; lower is better.
    relative_width
        (hi - lo) / measured.
    total_variation
        Distance between forecast and measured laws of L; None where either is unknown.
    rank_correlation, regret
        Of this model over all structures of this log and split; see `TransferSummary`.
    supported
        Whether what was fitted on reached every position asked for.
    note
        Reason of a refusal, or what the reader has to know.
    fit_prompts, holdout_prompts
        Numbers of prompts.
    """

    source: str
    log: str
    seed: int | None
    model: str
    fitted_on: str
    structure: str
    kind: str
    measured: float
    forecast: float | None
    lo: float | None
    hi: float | None
    relative_error: float | None
    sampling_floor: float | None
    sampling_floor_95: float | None
    inside: bool | None
    interval_score: float | None
    relative_width: float | None
    total_variation: float | None
    rank_correlation: float | None
    regret: float | None
    supported: bool
    note: str
    fit_prompts: int | None
    holdout_prompts: int | None

    @classmethod
    def of(cls, row: TransferRow, **facts: Any) -> ScoreRow:
        """Take the numbers of one transfer; `facts` are the other fields."""
        width = None if row.lo is None or row.hi is None else (row.hi - row.lo) / row.measured
        return cls(
            model=row.model,
            structure=row.structure,
            measured=row.measured,
            forecast=row.predicted,
            lo=row.lo,
            hi=row.hi,
            relative_error=row.relative_error,
            sampling_floor=row.sampling_floor,
            sampling_floor_95=row.sampling_floor_95,
            inside=row.inside,
            interval_score=row.interval_score,
            relative_width=width,
            total_variation=row.total_variation,
            supported=row.supported,
            note=row.note,
            **facts,
        )


@dataclass(frozen=True)
class ScoreSummary:
    """One model's rows summed up. Rows of one split share their held-out prompts, so they err together.

    Parameters
    ----------
    source, model, kind
        Whose rows; kind "all" is every kind but "same", and stands for the only one where there is but one. Model
        "advised" is hmm for chains, rank for static and replay for dynamic trees.
    forecasts, refused
        Numbers of rows with a forecast and without.
    median_abs_error, worst_abs_error
        Of the relative errors.
    sampling_floor, sampling_floor_95
        Median of the rows' floors; the largest of what a perfect model exceeds one time in twenty.
    coverage
        Share of intervals that hold the measurement.
    relative_width, interval_score, total_variation
        Means.
    interval_score_to_hazard
        Mean interval score over that of the hazard model on the rows that both forecast; below 1 is better. None
        where there is no such row.
    rank_correlation, regret
        Means over logs and splits; None for "advised" and for single kinds.
    """

    source: str
    model: str
    kind: str
    forecasts: int
    refused: int
    median_abs_error: float | None
    worst_abs_error: float | None
    sampling_floor: float | None
    sampling_floor_95: float | None
    coverage: float | None
    relative_width: float | None
    interval_score: float | None
    interval_score_to_hazard: float | None
    total_variation: float | None
    rank_correlation: float | None
    regret: float | None


def summarise(rows: Sequence[ScoreRow]) -> tuple[ScoreSummary, ...]:
    """Sum rows up by source, model and kind of structure.

    Parameters
    ----------
    rows
        Any rows.

    Returns
    -------
    tuple of ScoreSummary
        In order of appearance, a model's "all" first; "advised" last of a source that has its models.
    """
    made: list[ScoreSummary] = []
    for source in dict.fromkeys(row.source for row in rows):
        here = [row for row in rows if row.source == source]
        hazard = {_place(row): row for row in here if row.model == "hazard"}
        for model in dict.fromkeys(row.model for row in here):
            own = [row for row in here if row.model == model]
            made += _by_kind(source, model, own, hazard, whole=True)
        advised = [row for row in here if ADVISED.get(row.kind) == row.model]
        if len({row.model for row in advised}) > 1:
            made += _by_kind(source, "advised", advised, hazard, whole=False)
    return tuple(made)


def _place(row: ScoreRow) -> tuple[str, int | None, str]:
    """Return what tells one measurement from another, whatever was fitted."""
    return row.log, row.seed, row.structure


def _by_kind(
    source: str, model: str, rows: list[ScoreRow], hazard: dict[Any, ScoreRow], whole: bool
) -> list[ScoreSummary]:
    parts = {kind: [row for row in rows if row.kind == kind] for kind in (CHAIN, STATIC, DYNAMIC)}
    parts = {kind: part for kind, part in parts.items() if part}
    others = [row for row in rows if row.kind != SAME]
    if len(parts) == 1:
        parts = {"all": others}
    elif parts:
        parts = {"all": others, **parts}
    if same := [row for row in rows if row.kind == SAME]:
        parts[SAME] = same
    return [_summary(source, model, kind, part, hazard, whole and kind == "all") for kind, part in parts.items()]


def _summary(
    source: str, model: str, kind: str, rows: list[ScoreRow], hazard: dict[Any, ScoreRow], whole: bool
) -> ScoreSummary:
    errors = _known(abs(row.relative_error) if row.relative_error is not None else None for row in rows)
    floors = _known(row.sampling_floor for row in rows if row.forecast is not None)
    floors_95 = _known(row.sampling_floor_95 for row in rows if row.forecast is not None)
    inside = [row.inside for row in rows if row.inside is not None]
    # One split's ranking stands on each of its rows.
    splits = {(row.log, row.seed): row for row in rows}.values() if whole else ()
    pairs = [
        (row.interval_score, beside.interval_score)
        for row in rows
        if row.interval_score is not None
        and (beside := hazard.get(_place(row))) is not None
        and beside.interval_score is not None
    ]
    own, others = sum(first for first, _ in pairs), sum(second for _, second in pairs)
    return ScoreSummary(
        source=source,
        model=model,
        kind=kind,
        forecasts=len(errors),
        refused=len(rows) - len(errors),
        median_abs_error=float(np.median(errors)) if errors else None,
        worst_abs_error=max(errors, default=None),
        sampling_floor=float(np.median(floors)) if floors else None,
        sampling_floor_95=max(floors_95, default=None),
        coverage=sum(inside) / len(inside) if inside else None,
        relative_width=_mean(row.relative_width for row in rows),
        interval_score=_mean(row.interval_score for row in rows),
        interval_score_to_hazard=own / others if others else None,
        total_variation=_mean(row.total_variation for row in rows),
        rank_correlation=_mean(row.rank_correlation for row in splits),
        regret=_mean(row.regret for row in splits),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return float(np.mean(known)) if known else None
