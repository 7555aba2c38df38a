"""The scoreboard: every structure of one drafter, forecast from one of them on other prompts."""

from __future__ import annotations

import numpy as np
import pytest

from drafted_text import draft_texts, draw_texts
from gumiho_simulator.scoreboard.transfers import TransferValidation, score_transfers
from gumiho_theory import InputError, Trace


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    texts = draw_texts(np.random.default_rng(5), 120, 120, spread=0.3)
    return {f"chain:{length}": draft_texts(texts, length) for length in (1, 2, 3, 6)}


@pytest.fixture(scope="module")
def done(traces: dict[str, Trace]) -> TransferValidation:
    return score_transfers(traces, "chain:3", models=("hazard", "geometric", "hmm"))


def test_rows_hold_what_was_forecast_and_what_the_other_prompts_measured(
    traces: dict[str, Trace], done: TransferValidation
) -> None:
    assert len(done.rows) == 3 * 4
    assert set(done.fit_prompts).isdisjoint(done.holdout_prompts)
    for row in done.rows:
        assert row.measured == traces[row.structure].select(done.holdout_prompts).tau()
        if row.predicted is None:
            assert (row.lo, row.inside, row.interval_score, row.total_variation) == (None,) * 4
            continue
        assert row.relative_error == pytest.approx(row.predicted / row.measured - 1)
        outside = max(row.lo - row.measured, row.measured - row.hi, 0)  # type: ignore[operator]
        expected = (row.hi - row.lo + 40 * outside) / row.measured  # type: ignore[operator]
        assert row.interval_score == pytest.approx(expected)
        assert 0 <= row.total_variation <= 1  # type: ignore[operator]
        assert row.sampling_floor > 0  # type: ignore[operator]


def test_the_hidden_difficulty_beats_rates_alone_at_other_lengths(done: TransferValidation) -> None:
    hazard, geometric, hmm = done.summaries
    assert hmm.forecasts == geometric.forecasts == 3
    assert hazard.forecasts == 2  # it refuses what it never saw
    assert hmm.median_abs_error < geometric.median_abs_error  # type: ignore[operator]
    assert hmm.mean_interval_score < hazard.mean_interval_score  # type: ignore[operator]
    assert hmm.coverage == 1.0
    assert hmm.rank_correlation == 1.0
    assert hmm.regret == 0.0
    assert done.ranked_by == "tau"


def test_the_fitted_structure_itself_is_left_out_of_the_summaries(done: TransferValidation) -> None:
    errors = [
        abs(row.relative_error)  # type: ignore[arg-type]
        for row in done.rows
        if row.model == "hmm" and row.structure != "chain:3"
    ]
    assert done.summaries[2].worst_abs_error == max(errors)
    assert done.summaries[2].median_abs_error == pytest.approx(np.median(errors))


def test_plain_values_come_out(done: TransferValidation) -> None:
    value = done.to_json()
    assert value["fit_structure"] == "chain:3"
    assert value["rows"][0]["model"] == "hazard"
    assert value["holdout_prompts"] == 60


def test_what_cannot_be_scored_is_refused(traces: dict[str, Trace]) -> None:
    with pytest.raises(InputError, match="fit structure"):
        score_transfers(traces, "chain:4")
    with pytest.raises(InputError, match="holdout"):
        score_transfers(traces, "chain:3", holdout=1.0)
    other = traces | {"chain:2": traces["chain:2"].select(traces["chain:2"].prompts[:5])}
    with pytest.raises(InputError, match="prompts of the chain:2 trace"):
        score_transfers(other, "chain:3")
    few = {name: trace.select(["p0", "p1"]) for name, trace in traces.items()}
    with pytest.raises(InputError, match="at least two of each"):
        score_transfers(few, "chain:3")


@pytest.mark.slow
def test_intervals_of_the_hidden_difficulty_cover_about_95_percent_at_other_lengths() -> None:
    rng = np.random.default_rng(9)
    inside = []
    for repetition in range(12):
        texts = draw_texts(rng, 80, 100, spread=0.3)
        made = {f"chain:{length}": draft_texts(texts, length) for length in (1, 2, 3, 5)}
        done = score_transfers(made, "chain:3", seed=repetition, models=("hmm",))
        inside += [row.inside for row in done.rows]
    # 95 % of 48 is 45.6; the four of one repetition go together.
    assert np.mean(inside) >= 0.85
