"""What one log, one group of traces or the published curves add to the scoreboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gumiho_simulator.forecasting.expected import expected_tau
from gumiho_simulator.forecasting.fitting import fit
from gumiho_simulator.forecasting.holdout import Split, hold_out, sampling_errors
from gumiho_simulator.forecasting.judged import JudgedForecast, judge
from gumiho_simulator.forecasting.published import forecast_points, published_sweeps, ratio_points
from gumiho_simulator.forecasting.tau import Forecast, forecast
from gumiho_simulator.replaying.as_trace import replay_trace
from gumiho_simulator.scoreboard.rows import CHAIN, DYNAMIC, PUBLISHED, REPLAY, SAME, STATIC, TRACE, ScoreRow
from gumiho_simulator.scoreboard.transfers import TransferValidation, ranking, score_transfers
from gumiho_theory import ChainStructure, EveryPositionLog, InputError, StaticTree, Structure, Trace, rank_rates

FIT_LENGTH = 3
LENGTHS = (1, 2, 3, 5, 7)
TREES = (8, 20)  # nodes of the static trees, root included
HOLDOUT = 0.5


def score_log(name: str, log: EveryPositionLog, seed: int) -> tuple[list[ScoreRow], list[str]]:
    """Fit every model to chain:3 replayed on half of the prompts, forecast other structures, replay them on the rest.

    Forecast are chains of 1, 2, 3, 5 and 7, two static trees, of 8 and 20 nodes, that are the best by the ranks of the
    prompts fitted to, and the trees among the log's own structures. Returned with notes on structures left out.
    InputError for a log that cannot be replayed, or too few prompts.
    """
    if log.depth < 1:
        raise InputError("log", "no draft position", "at least one")
    length = min(FIT_LENGTH, log.depth)
    source = str(ChainStructure(length))
    chain = replay_trace(log, source)
    split = hold_out(chain, HOLDOUT, seed)
    structures: list[Structure] = [ChainStructure(n) for n in sorted({*LENGTHS, length}) if n <= log.depth]
    notes: list[str] = []
    try:
        rates = rank_rates(chain.select(split.fit)).rates
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
    facts = {"source": REPLAY, "log": name, "seed": seed} | _sizes(split)
    rows = _transferred(score_transfers(made, source, HOLDOUT, seed), facts)
    return [*rows, *_replayed(made, split, seed, facts)], notes


def score_traces(name: str, traces: Mapping[str, Trace], seed: int) -> tuple[list[ScoreRow], list[str]]:
    """Fit every model to one cycle trace on half of the prompts and forecast the others, and other structures' traces.

    The traces are by structure, the fitted one first, all of the same prompts. A dynamic tree's trace that logged what
    its scores promised has a row for that too. No notes so far. InputError for too few prompts, or structures that
    contradict the drafts.
    """
    source = next(iter(traces))
    split = hold_out(traces[source], HOLDOUT, seed)
    facts = {"source": TRACE, "log": name, "seed": seed} | _sizes(split)
    rows = _transferred(score_transfers(traces, source, HOLDOUT, seed), facts)
    for structure, trace in traces.items():
        promised = _promised(structure, trace, split, seed)
        if promised is not None:
            rows.append(ScoreRow.of(promised, kind=DYNAMIC, fitted_on=f"scores of {structure}", **facts))
    return rows, []


def score_published() -> list[ScoreRow]:
    """Forecast each published curve from its points up to length 3, with what the other curves taught.

    Each length beyond 3 has a row of model "points", and of "ratio", a constant ratio of gains, without interval.
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
        facts = {"source": PUBLISHED, "log": name, "fitted_on": lengths, "kind": CHAIN}
        for made in (forecast_points(known, beyond, others), ratio_points(known, beyond)):
            for length, one in zip(beyond, made, strict=True):
                rows.append(ScoreRow.of(judge(one, curve[length], None), **facts))
    return rows


def _sizes(split: Split) -> dict[str, int]:
    return {"fit_prompts": len(split.fit), "holdout_prompts": len(split.held)}


def _transferred(scored: TransferValidation, facts: dict[str, Any]) -> list[ScoreRow]:
    """Take the rows of every model with the ranking of its structures."""
    source, rows = scored.fit_structure, []
    ranked = {one.model: {"rank_correlation": one.rank_correlation, "regret": one.regret} for one in scored.summaries}
    for row in scored.rows:
        kind = SAME if row.structure == source else _kind(row.structure)
        rows.append(ScoreRow.of(row, kind=kind, fitted_on=source, **ranked[row.model], **facts))
    return rows


def _replayed(made: Mapping[str, Trace], split: Split, seed: int, facts: dict[str, Any]) -> list[ScoreRow]:
    """Forecast each structure by replaying it on the fitted prompts: its own rates there."""
    rows = []
    for structure, trace in made.items():
        train, test = trace.select(split.fit), trace.select(split.held)
        # As its own structure, so that any kind of it is forecast from its rates by depth.
        (one,) = forecast(fit(train, "hazard"), [structure], len(split.held), seed)
        floor = sampling_errors(test, np.random.default_rng(seed))
        rows.append(judge(replace(one, model="replay"), test, floor))
    correlation, regret = ranking(rows, {})
    facts |= {"fitted_on": "every position, the structure replayed", "rank_correlation": correlation, "regret": regret}
    return [ScoreRow.of(row, kind=_kind(row.structure), **facts) for row in rows]


def _kind(structure: str) -> str:
    return {"chain": CHAIN, "static": STATIC}.get(structure.partition(":")[0], DYNAMIC)


def _promised(structure: str, trace: Trace, split: Split, seed: int) -> JudgedForecast | None:
    """Score what the held-out prompts' trees expected of themselves; the limits are the error on the other prompts."""
    generator, floors = np.random.default_rng(seed).spawn(2)
    test = trace.select(split.held)
    before = expected_tau(trace.select(split.fit), generator)
    promised = expected_tau(test, generator)
    if before is None or promised is None:
        return None
    lo = hi = None
    if before.lo is not None and before.hi is not None:
        error = before.expected - before.measured
        scale = float(np.sqrt(len(split.fit) / len(split.held)))
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
        n_prompts=len(split.fit),
        new_prompts=len(split.held),
        seed=seed,
    )
    return judge(one, test, sampling_errors(test, floors))
