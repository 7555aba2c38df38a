"""Fits: the choice of a model, held-out scores, model files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gumiho_simulator import FitResult, fit, forecast
from gumiho_theory import AcceptanceCounts, InputError, Trace

MakeTrace = Callable[..., Trace]


def test_auto_takes_what_the_log_is_like(traces: MakeTrace) -> None:
    alike = traces(np.random.default_rng(1), prompts=20, spread=0.0).counts_by_prompt()
    assert fit(alike).model.name == "hazard"
    apart = traces(np.random.default_rng(1), prompts=20, spread=0.6).counts_by_prompt()
    assert fit(apart).model.name == "mixture"
    same = traces(np.random.default_rng(2), prompts=20, rates=(0.7,) * 12, spread=0.0, mean_cycles=6)
    assert fit(same.counts_by_prompt()).model.name == "geometric"


def test_auto_takes_the_highest_held_out_likelihood_of_what_the_log_allows(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(5), prompts=10, rates=(0.8, 0.6), mean_cycles=10)
    scores = {name: fit(trace, name).heldout_log_likelihood for name in ("hazard", "geometric", "mixture", "hmm")}
    assert fit(trace).model.name == max(scores, key=lambda name: scores[name])  # type: ignore[arg-type,return-value]


def test_the_held_out_score_is_the_sum_over_folds_of_a_plain_loop(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(3), prompts=7, rates=(0.8, 0.5))
    counts = trace.counts_by_prompt()
    assert counts.at_risk is not None
    assert counts.accepted is not None
    expected = 0.0
    for fold in range(5):
        for position in range(2):
            n = k = seen = won = 0
            for prompt in range(7):
                if prompt % 5 == fold:
                    n += counts.at_risk[prompt, position]
                    k += counts.accepted[prompt, position]
                else:
                    seen += counts.at_risk[prompt, position]
                    won += counts.accepted[prompt, position]
            rate = (won + 0.5) / (seen + 1)
            expected += k * math.log(rate) + (n - k) * math.log(1 - rate)
    fitted = fit(trace, "hazard")
    assert fitted.heldout_log_likelihood == pytest.approx(expected)
    assert fitted.heldout_log_likelihood < fitted.log_likelihood
    assert (fitted.n_prompts, fitted.n_cycles) == (7, trace.n_cycles)


def test_a_model_file_gives_the_same_forecasts_back(trace: Trace, tmp_path: Path) -> None:
    for name in ("hazard", "geometric", "mixture"):
        fitted = fit(trace, name)
        fitted.write(tmp_path / "model.json")
        again = FitResult.read(tmp_path / "model.json")
        assert again.summary() == fitted.summary()
        assert forecast(again, ["chain:3", "chain:7"]) == forecast(fitted, ["chain:3", "chain:7"])


def test_auto_needs_two_prompts_and_a_named_model_does_not(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(4), prompts=1)
    with pytest.raises(InputError, match="at least two"):
        fit(trace.counts_by_prompt())
    assert fit(trace, "hazard").heldout_log_likelihood is None


def test_unknown_models_are_refused_with_those_that_exist(trace: Trace) -> None:
    with pytest.raises(InputError, match=r"'best'.*hazard, geometric, mixture, hmm, rank"):
        fit(trace, "best")


def test_a_log_without_what_a_model_needs_is_refused_with_what_would_do(trace: Trace) -> None:
    with pytest.raises(InputError, match="rank"):
        fit(trace.counts_by_prompt(), "rank")


def test_prompts_without_a_cycle_at_risk_do_not_break_the_folds() -> None:
    at_risk = np.array([[5], [0], [4], [0], [3], [0]])
    counts = AcceptanceCounts(
        groups=tuple("abcdef"),
        cycles=np.array([5, 1, 4, 1, 3, 1]),
        total_accepted=np.array([2, 0, 2, 0, 1, 0]),
        complete_cycles=np.array([5, 1, 4, 1, 3, 1]),
        at_risk=at_risk,
        accepted=np.array([[2], [0], [2], [0], [1], [0]]),
    )
    assert math.isfinite(fit(counts, "hazard").heldout_log_likelihood or math.nan)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "gumiho.trace/1"}, "schema"),
        ({"model": "best"}, "model"),
        ({"model": "rank"}, "cycles"),
        ({"model": "hmm"}, "cycles"),
        ({"model": "hmm", "cycles": {"outputs": []}}, "cycles"),
        ({"model": "rank", "cycles": 3, "ranks": 3}, "cycles"),
        ({"structure": 7}, "structure"),
        ({"counts": None}, "counts"),
        ({"counts": {"schema": "gumiho.acceptance_counts/1"}}, "counts"),
    ],
)
def test_a_model_file_that_is_wrong_is_refused_by_name(
    trace: Trace, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(fit(trace, "hazard").to_json() | change))
    with pytest.raises(InputError, match=message) as caught:
        FitResult.read(path)
    assert str(path) in str(caught.value)


def test_a_model_file_that_cannot_be_written_is_an_input_error(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        fit(trace, "hazard").write(tmp_path / "missing" / "model.json")
