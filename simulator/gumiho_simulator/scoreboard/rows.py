"""What a scoreboard holds: one row a forecast beside its measurement, and summaries of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gumiho_simulator.forecasting.judged import JudgedForecast, Summary, mean, sum_up

SAME, CHAIN, STATIC, DYNAMIC = "same", "chain", "static tree", "dynamic tree"
REPLAY, TRACE, PUBLISHED = "replay", "trace", "published"
# What to ask for each kind of structure: the summary "advised".
ADVISED = {CHAIN: "hmm", STATIC: "rank", DYNAMIC: "replay"}


@dataclass(frozen=True, kw_only=True)
class ScoreRow(JudgedForecast):
    """One forecast of the scoreboard.

    Beside the acceptance models, `model` may be "replay": the structure replayed on the other prompts' every position;
    "scores": what the drafter's own scores promised; "points", "ratio": from published points, and by a constant ratio
    of gains.

    Parameters
    ----------
    source, log
        "replay" (an every-position log), "trace" (cycle traces) or "published" (tau by draft length alone); file or
        curve.
    fitted_on
        What the model was fitted on, always of other prompts than the measurement.
    kind
        Of the structure: chain, static tree, dynamic tree, or same: the structure that was fitted.
    seed, fit_prompts, holdout_prompts
        Of the split of the prompts, and numbers of them; None where there is none.
    rank_correlation, regret
        Of this model over all structures of this log and split; see `TransferSummary`.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *("source", "log", "seed", "model", "fitted_on", "structure", "kind", "measured", "forecast", "lo", "hi"),
        *("relative_error", "sampling_floor", "sampling_floor_95", "inside", "interval_score", "relative_width"),
        *("total_variation", "rank_correlation", "regret", "supported", "note", "fit_prompts", "holdout_prompts"),
    )

    source: str
    log: str
    fitted_on: str
    kind: str
    seed: int | None = None
    fit_prompts: int | None = None
    holdout_prompts: int | None = None
    rank_correlation: float | None = None
    regret: float | None = None

    @classmethod
    def of(cls, row: JudgedForecast, **facts: Any) -> ScoreRow:
        """Add to a judged forecast what the scoreboard says of it: `facts`, the fields of this class."""
        return cls(**vars(row), **facts)

    @property
    def forecast(self) -> float | None:
        """Forecast tau, `predicted`; None when refused."""
        return self.predicted


@dataclass(frozen=True, kw_only=True)
class ScoreSummary(Summary):
    """One model's rows summed up. Rows of one split share their held-out prompts, so they err together.

    Parameters
    ----------
    source, model, kind
        Whose rows; kind "all" is every kind but "same", and stands for the only one where there is but one. Model
        "advised" is hmm for chains, rank for static and replay for dynamic trees.
    interval_score_to_hazard
        Mean interval score over that of the hazard model on the rows that both forecast; below 1 is better. None
        where there is no such row.
    rank_correlation, regret
        Means over logs and splits; None for "advised" and for single kinds.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *("source", "model", "kind", "forecasts", "refused", "median_abs_error", "worst_abs_error", "sampling_floor"),
        *("sampling_floor_95", "coverage", "relative_width", "interval_score", "interval_score_to_hazard"),
        *("total_variation", "rank_correlation", "regret"),
    )

    source: str
    model: str
    kind: str
    interval_score_to_hazard: float | None
    rank_correlation: float | None
    regret: float | None


def summarise(rows: Sequence[ScoreRow]) -> tuple[ScoreSummary, ...]:
    """Sum rows up by source, model and kind of structure, in order of appearance.

    A model's "all" comes first, "advised" last of a source that has its models.
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
        **vars(sum_up(rows)),
        source=source,
        model=model,
        kind=kind,
        interval_score_to_hazard=own / others if others else None,
        rank_correlation=mean(row.rank_correlation for row in splits),
        regret=mean(row.regret for row in splits),
    )
