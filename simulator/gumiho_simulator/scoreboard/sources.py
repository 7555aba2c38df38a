"""What one log, one group of traces or the published curves add to the scoreboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gumiho_simulator.forecasting.expected import expected_tau
from gumiho_simulator.forecasting.fitting import fit
from gumiho_simulator.forecasting.forecasts import CONVENTION, Forecast, forecast
from gumiho_simulator.forecasting.published import forecast_points, published_sweeps, ratio_points
from gumiho_simulator.forecasting.validation import sampling_errors
from gumiho_simulator.replaying.as_trace import replay_trace
from gumiho_simulator.scoreboard.rows import CHAIN, DYNAMIC, PUBLISHED, REPLAY, SAME, STATIC, TRACE, ScoreRow
from gumiho_simulator.scoreboard.transfers import (
    TransferRow,
    TransferSummary,
    hold_out,
    score_transfers,
    transfer_row,
    transfer_summary,
)
from gumiho_theory import ChainStructure, EveryPositionLog, InputError, StaticTree, Structure, Trace, rank_rates

FIT_LENGTH = 3
LENGTHS = (1, 2, 3, 5, 7)
TREES = (8, 20)  # nodes of the static trees, root included
HOLDOUT = 0.5


def score_log(name: str, log: EveryPositionLog, seed: int) -> tuple[list[ScoreRow], list[str]]:
    """Fit every model to chain:3 replayed on half of the prompts, forecast other structures, replay them on the rest.

    Forecast are chains of 1, 2, 3, 5 and 7, two static trees, of 8 and 20 nodes, that are the best by the ranks of the
    prompts fitted to, and the trees among the log's own structures.

    Parameters
    ----------
    name
        Name of the log.
    log
        The log.
    seed
        Seed of the split and of the resampling.

    Returns
    -------
    rows : list of ScoreRow
    notes : list of str
        Structures left out, with the reason.

    Raises
    ------
    InputError
        A log that cannot be replayed, or too few prompts.
    """
    if log.depth < 1:
        raise InputError("log", "no draft position", "at least one")
    length = min(FIT_LENGTH, log.depth)
    source = str(ChainStructure(length))
    held = hold_out(log, HOLDOUT, seed)
    chain = replay_trace(log, source)
    fit_prompts = [prompt for prompt in chain.prompts if prompt not in held]
    structures: list[Structure] = [ChainStructure(n) for n in sorted({*LENGTHS, length}) if n <= log.depth]
    notes: list[str] = []
    try:
        rates = rank_rates(chain.select(fit_prompts)).rates
        structures += [StaticTree.best(rates, nodes) for nodes in TREES]
    except InputError as error:
        notes.append(f"no static tree by ranks: {error}")
    structures += [Structure.parse(text) for text in log.structures if not text.startswith("chain:")]
    made: dict[str, Trace] = {}
    for one in dict.fromkeys(structures):
        try:
            made[str(one)] = replay_trace(log, one)
        except InputError as error:
            notes.append(f"{one} left out: {error}")
    scored = score_transfers(made, source, HOLDOUT, seed)
    facts = {"source": REPLAY, "log": name, "seed": seed}
    sizes = {"fit_prompts": len(scored.fit_prompts), "holdout_prompts": len(scored.holdout_prompts)}
    rows: list[ScoreRow] = []
    for summary in scored.summaries:
        own = [row for row in scored.rows if row.model == summary.model]
        rows += _score_rows(own, summary, source, facts | sizes | {"fitted_on": source})
    rows += _replayed(made, scored.fit_prompts, scored.holdout_prompts, seed, facts | sizes)
    return rows, notes


def score_traces(name: str, traces: Mapping[str, Trace], seed: int) -> tuple[list[ScoreRow], list[str]]:
    """Fit every model to one cycle trace on half of the prompts and forecast the others, and other structures' traces.

    Parameters
    ----------
    name
        Name of the fitted trace.
    traces
        By structure, the fitted one first; all of the same prompts.
    seed
        Seed of the split and of the resampling.

    Returns
    -------
    rows : list of ScoreRow
        A dynamic tree's trace that logged what its scores promised has a row for that too.
    notes : list of str
        None so far.

    Raises
    ------
    InputError
        Too few prompts, or structures that contradict the drafts.
    """
    source = next(iter(traces))
    scored = score_transfers(traces, source, HOLDOUT, seed)
    facts = {"source": TRACE, "log": name, "seed": seed}
    facts |= {"fit_prompts": len(scored.fit_prompts), "holdout_prompts": len(scored.holdout_prompts)}
    rows: list[ScoreRow] = []
    for summary in scored.summaries:
        own = [row for row in scored.rows if row.model == summary.model]
        rows += _score_rows(own, summary, source, facts | {"fitted_on": source})
    for structure, trace in traces.items():
        promised = _promised(structure, trace, scored.fit_prompts, scored.holdout_prompts, seed)
        if promised is not None:
            rows.append(_score_row(promised, DYNAMIC, facts | {"fitted_on": f"scores of {structure}"}))
    return rows, []


def score_published() -> list[ScoreRow]:
    """Forecast each published curve from its points up to length 3, with what the other curves taught.

    Returns
    -------
    list of ScoreRow
        Of each length beyond 3: model "points", and "ratio", a constant ratio of gains, without interval.
    """
    sweeps = published_sweeps()
    rows: list[ScoreRow] = []
    for name, curve in sweeps.items():
        known = {length: tau for length, tau in curve.items() if length <= FIT_LENGTH}
        beyond = [length for length in curve if length > FIT_LENGTH]
        if len(known) < 2 or not beyond:
            continue
        others = [other for key, other in sweeps.items() if key != name]
        lengths = f"lengths {', '.join(map(str, known))}"
        facts = {"source": PUBLISHED, "log": name, "seed": None, "fitted_on": lengths}
        facts |= dict.fromkeys(("fit_prompts", "holdout_prompts", "rank_correlation", "regret"))
        for made in (forecast_points(known, beyond, others), ratio_points(known, beyond)):
            for length, one in zip(beyond, made, strict=True):
                rows.append(ScoreRow.of(transfer_row(one, curve[length], None), kind=CHAIN, **facts))
    return rows


def _replayed(
    made: Mapping[str, Trace], fit_prompts: Sequence[str], holdout: Sequence[str], seed: int, facts: dict[str, Any]
) -> list[ScoreRow]:
    """Forecast each structure by replaying it on the fitted prompts: its own rates there."""
    rows, tests = [], {}
    for structure, trace in made.items():
        train, tests[structure] = trace.select(fit_prompts), trace.select(holdout)
        # As its own structure, so that any kind of it is forecast from its rates by depth.
        (one,) = forecast(fit(train, "hazard"), [structure], len(holdout), seed)
        floor = sampling_errors(tests[structure], np.random.default_rng(seed))
        rows.append(transfer_row(replace(one, model="replay"), tests[structure], floor))
    summary = transfer_summary("replay", rows, "", {})
    return _score_rows(rows, summary, "", facts | {"fitted_on": "every position, the structure replayed"})


def _score_rows(
    rows: Sequence[TransferRow], summary: TransferSummary, source: str, facts: dict[str, Any]
) -> list[ScoreRow]:
    ranked = {"rank_correlation": summary.rank_correlation, "regret": summary.regret}
    return [_score_row(row, SAME if row.structure == source else _kind(row.structure), facts | ranked) for row in rows]


def _score_row(row: TransferRow, kind: str, facts: dict[str, Any]) -> ScoreRow:
    return ScoreRow.of(row, kind=kind, **({"rank_correlation": None, "regret": None} | facts))


def _kind(structure: str) -> str:
    return {"chain": CHAIN, "static": STATIC}.get(structure.partition(":")[0], DYNAMIC)


def _promised(
    structure: str, trace: Trace, fit_prompts: Sequence[str], holdout: Sequence[str], seed: int
) -> TransferRow | None:
    """Score what the held-out prompts' trees expected of themselves; the limits are the error on the other prompts."""
    generator, floors = np.random.default_rng(seed).spawn(2)
    test = trace.select(holdout)
    before = expected_tau(trace.select(fit_prompts), generator)
    promised = expected_tau(test, generator)
    if before is None or promised is None:
        return None
    lo = hi = None
    if before.lo is not None and before.hi is not None:
        error = before.expected - before.measured
        scale = float(np.sqrt(len(fit_prompts) / len(holdout)))
        # Calibrated scores err by nothing on average; how far they stray is what the other prompts show.
        lo = max(1.0, promised.expected - scale * (before.hi - error))
        hi = promised.expected + scale * (error - before.lo)
    calibrated = bool(trace.provenance.get("calibrated"))
    one = Forecast(
        structure=structure,
        model="scores",
        tau=promised.expected,
        lo=lo,
        hi=hi,
        supported=calibrated,
        note="" if calibrated else "draft scores as they are, not calibrated",
        pmf=None,
        survival=None,
        convention=CONVENTION,
        n_prompts=len(fit_prompts),
        new_prompts=len(holdout),
        seed=seed,
    )
    return transfer_row(one, test, sampling_errors(test, floors))
