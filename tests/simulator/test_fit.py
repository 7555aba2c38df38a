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


def test_auto_takes_the_hazard_where_rates_differ_and_the_geometric_where_they_do_not(
    traces: MakeTrace,
) -> None:
    differ = traces(np.random.default_rng(1), prompts=20)
    assert fit(differ).model.name == "hazard"
    same = traces(np.random.default_rng(2), prompts=20, rates=(0.7,) * 12, spread=0.0, mean_cycles=6)
    assert fit(same).model.name == "geometric"


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
    for name in ("hazard", "geometric"):
        fitted = fit(trace, name)
        fitted.write(tmp_path / "model.json")
        again = FitResult.read(tmp_path / "model.json")
        assert again.summary() == fitted.summary()
        assert forecast(again, ["chain:3", "chain:7"]) == forecast(fitted, ["chain:3", "chain:7"])


def test_auto_needs_two_prompts_and_a_named_model_does_not(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(4), prompts=1)
    with pytest.raises(InputError, match="at least two"):
        fit(trace)
    assert fit(trace, "hazard").heldout_log_likelihood is None


def test_later_models_are_refused_with_those_that_exist(trace: Trace) -> None:
    with pytest.raises(InputError, match=r"'hmm'.*hazard, geometric"):
        fit(trace, "hmm")


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
        ({"model": "rank"}, "model"),
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
