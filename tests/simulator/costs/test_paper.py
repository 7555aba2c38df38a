"""The paper's speed-ups: what a cost ratio fitted on half of the targets says of the other half."""

from __future__ import annotations

import numpy as np
import pytest

from gumiho_simulator.costs.paper import every_half, predict_ratios, published_speedups
from gumiho_theory import InputError


def test_the_shipped_table_is_complete_and_holds_known_rows() -> None:
    table = published_speedups()
    assert len(table) == 7 * 2 * 2 * 6
    assert not table.duplicated(["target", "method", "temperature", "benchmark"]).any()
    known = table.set_index(["target", "method", "temperature", "benchmark"]).loc[
        ("vicuna-7b", "Gumiho", 0, "mt_bench")
    ]
    assert (known["speedup"], known["tau"]) == (3.15, 5.29)


def test_a_prediction_is_the_ratio_of_tau_times_the_fitted_ratio_of_cycle_times() -> None:
    made = predict_ratios(["vicuna-7b", "llama3-70b", "llama2-13b"])
    table = published_speedups()
    steps = (table["tau"] / table["speedup"]).groupby([table["target"], table["method"]])
    cycle = np.exp(steps.apply(lambda values: np.log(values).mean()))
    ratio = [cycle[target, "EAGLE-2"] / cycle[target, "Gumiho"] for target in made.fitted_on]
    assert made.cost_ratio == pytest.approx(np.exp(np.mean(np.log(ratio))))
    assert made.predicted.shape == made.published.shape == (4 * 12,)


def test_over_all_halves_the_mean_error_is_about_4_percent_and_the_worst_half_s_7() -> None:
    halves = every_half()
    assert len(halves) == 35
    means = [np.abs(half.errors).mean() for half in halves]
    assert np.mean(means) == pytest.approx(0.041, abs=0.001)
    assert max(means) == pytest.approx(0.069, abs=0.001)
    # Knowing no cost at all, the ratio of tau alone, is off by more.
    alone = [np.abs(half.predicted / half.cost_ratio / half.published - 1).mean() for half in halves]
    assert np.mean(alone) > 1.2 * np.mean(means)


@pytest.mark.parametrize("targets", [[], ["vicuna-7b", "gpt"], sorted(set(published_speedups()["target"]))])
def test_targets_that_leave_nothing_to_fit_or_to_predict_are_refused(targets: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        predict_ratios(targets)
    assert caught.value.place == "targets"
