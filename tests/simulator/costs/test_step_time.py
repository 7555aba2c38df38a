"""Step times: published and measured ones are predicted at sizes left out; logged cycles give their costs back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_simulator.costs.cycle import CycleTimes, fit_cycle_cost, fit_cycle_times
from gumiho_simulator.costs.step_time import StepTime, fit_kind, fit_step_time, left_out_errors
from gumiho_theory import InputError, Trace

# vLLM issue 20780, Llama-3.1-8B: tau (bonus included) and milliseconds an output token at draft lengths 2..7, so that
# a cycle takes the product.
LENGTHS = np.arange(2, 8)
PUBLISHED = {
    "EAGLE": ([2.10, 2.29, 2.39, 2.43, 2.45, 2.47], [4.37, 4.29, 4.48, 4.71, 4.94, 5.20]),
    "EAGLE-3": ([2.36, 2.79, 3.08, 3.32, 3.46, 3.54], [4.32, 4.09, 4.05, 4.13, 4.20, 4.29]),
}
NODES = (1, 2, 4, 8, 16, 32, 64, 128)
# gumiho profile, the embedded pair of 2026-11 on one thread of an AMD EPYC with other work beside it: milliseconds of a
# verification, three runs.
MEASURED = (
    (43.54, 48.37, 60.39, 61.11, 68.36, 98.21, 132.25, 200.89),
    (37.47, 46.06, 49.23, 56.67, 62.97, 82.43, 118.85, 186.73),
    (53.21, 75.40, 75.82, 87.65, 95.56, 125.30, 170.65, 274.48),
)
# Cycles of chains of length 1..7 of the same pair there, timed in turns: drafting, verifying, the rest, milliseconds.
CYCLES = (
    (27.88, 51.73, 76.45, 68.71, 75.02, 77.96, 78.58),
    (115.47, 137.0, 122.93, 125.56, 132.63, 150.14, 143.93),
    (0.59, 0.61, 0.6, 0.66, 0.8, 0.68, 0.74),
)


def cycle_ms(name: str) -> np.ndarray:
    tau, token_ms = PUBLISHED[name]
    return np.array(tau) * np.array(token_ms)


def test_published_eagle_cycles_are_predicted_within_3_percent_at_every_length_left_out() -> None:
    fitted = fit_step_time(LENGTHS + 1, cycle_ms("EAGLE"))
    assert fitted.time.kind == "line"
    assert fitted.error is not None
    assert fitted.error.sizes == 6
    assert fitted.error.worst < 0.012


def test_published_eagle_3_cycles_are_predicted_within_3_percent_in_the_mean() -> None:
    error = fit_step_time(LENGTHS + 1, cycle_ms("EAGLE-3")).error
    assert error is not None
    assert error.mean < 0.02
    assert error.worst < 0.04


def test_the_leave_one_out_error_equals_fitting_by_hand_without_each_length() -> None:
    times = cycle_ms("EAGLE")
    by_hand = []
    for out in range(6):
        keep = np.arange(6) != out
        slope, start = np.polyfit(LENGTHS[keep], times[keep], 1, w=1 / times[keep])
        by_hand.append((start + slope * LENGTHS[out]) / times[out] - 1)
    nodes = (LENGTHS + 1).astype(np.float64)
    np.testing.assert_allclose(left_out_errors(nodes, times, np.zeros(6), "line"), by_hand, atol=1e-9)


def test_measured_verifications_are_predicted_within_5_percent_where_the_machine_was_steady() -> None:
    errors = [fit_step_time(NODES, times).error for times in MEASURED]
    means = sorted(error.mean for error in errors if error is not None)
    assert means[1] < 0.03
    # One of the runs was disturbed in the middle, as its times at 4 and 8 tokens show.
    assert means[2] < 0.08


def test_measured_cycles_are_predicted_within_5_percent_in_the_mean_at_every_length_left_out() -> None:
    lengths = np.arange(1.0, 8.0)
    times = CycleTimes(lengths, lengths + 1, np.full(7, 128.0), np.ones(7), *(np.array(part) for part in CYCLES))
    error = fit_cycle_times(times, 2).error
    assert error is not None
    assert error.sizes == 7
    assert error.mean < 0.04


def test_one_context_is_no_ground_for_a_cost_of_context() -> None:
    time = fit_step_time([2, 4, 8], [3.0, 4.0, 6.0], [128, 128, 128]).time
    assert (time.context_each, time.first) == (0.0, 0.0)
    assert time.fixed == pytest.approx(2.5)


def test_a_published_stair_is_found_to_be_flat_behind_its_step() -> None:
    # Draft-length audit (Jella et al. 2026): 15.8 ms for one token, 18.5 for two, flat to eight.
    fitted = fit_step_time(range(1, 9), [15.8] + [18.5] * 7)
    np.testing.assert_allclose(fitted.time.seconds([1, 2, 8]), [15.8, 18.5, 18.5])


@settings(max_examples=15, deadline=None)
@given(
    width=st.sampled_from([2, 4, 8, 16, 32]),
    fixed=st.floats(1, 50),
    first=st.floats(0, 10),
    each=st.floats(1, 10),
    behind=st.floats(0, 1e-3),
)
def test_a_stair_is_told_from_a_line_and_given_back(
    width: int, fixed: float, first: float, each: float, behind: float
) -> None:
    truth = StepTime(width, fixed, first, each, behind)
    sizes = sorted({1, 2, *(k * width + more for k in range(1, 5) for more in (0, 1))})
    nodes, context = (np.ravel(grid) for grid in np.meshgrid(sizes, [100, 900]))
    fitted = fit_step_time(nodes, truth.seconds(nodes, context), context).time
    assert (fitted.kind, fitted.width) == ("stair", width)
    np.testing.assert_allclose(fitted.seconds(nodes, context), truth.seconds(nodes, context), rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 10), st.floats(0, 5), st.floats(0.01, 10))
def test_a_line_is_given_back(fixed: float, first: float, each: float) -> None:
    truth = StepTime(1, fixed, first, each, 0.0)
    fitted = fit_step_time([1, 2, 3, 5, 9, 17], truth.seconds([1, 2, 3, 5, 9, 17])).time
    assert fitted.kind == "line"
    np.testing.assert_allclose(fitted.seconds([4, 30]), truth.seconds([4, 30]), rtol=1e-6)


def test_no_time_falls_with_size_whatever_noise_says() -> None:
    fitted = fit_kind(np.array([2.0, 3, 4]), np.array([3.0, 2, 1]), np.zeros(3), "line")
    assert fitted.each == 0
    assert fitted.seconds(2) > 0


def test_two_sizes_give_a_line_without_a_score() -> None:
    fitted = fit_step_time([2, 4], [1.0, 2.0])
    assert fitted.errors == ()
    assert fitted.error is None
    assert fitted.time.seconds(3) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("nodes", "seconds", "context", "place"),
    [
        ([1, 2], [1.0], None, "nodes, seconds and context"),
        ([0, 2], [1.0, 1.0], None, "nodes"),
        ([1, 2], [1.0, 0.0], None, "seconds"),
        ([1, 2], [1.0, float("inf")], None, "seconds"),
        ([1, 2], [1.0, 1.0], [-1, 0], "context"),
        ([3, 3], [1.0, 1.0], None, "nodes"),
        ([1, float("nan")], [1.0, 1.0], None, "nodes"),
    ],
)
def test_times_that_cannot_be_fitted_are_refused(nodes: Any, seconds: Any, context: Any, place: str) -> None:
    with pytest.raises(InputError) as caught:
        fit_step_time(nodes, seconds, context)
    assert caught.value.place == place


def logged(length: int, rng: np.random.Generator, noise: float = 0.03, steps: int | None = 2) -> Trace:
    """A chain's trace whose times follow 1.5 ms a serial step, 2 ms for the parallel heads, 10 + 0.4 n + 1e-3 c ms."""
    serial = length if steps is None else min(length, steps)
    rows = []
    for prompt in range(8):
        for cycle in range(12):
            context = 50 + 40 * cycle + 7 * prompt
            factor = 1 + noise * rng.standard_exponential(3)
            rows.append(
                {
                    "prompt_id": str(prompt),
                    "turn": 0,
                    "cycle": cycle,
                    "position": context,
                    "drafted": length,
                    "nodes": length + 1,
                    "accepted": 0,
                    "committed": 1,
                    "draft_seconds": float((1.5e-3 * serial + 2e-3 * (length > serial)) * factor[0]),
                    "verify_seconds": float((10e-3 + 0.4e-3 * (length + 1) + 1e-6 * context) * factor[1]),
                    "other_seconds": float(0.5e-3 * factor[2]),
                }
            )
    shape = None if steps is None else {"serial_steps": steps}
    return Trace.from_rows(rows, {"drafter": "d", "drafter_shape": shape})


def test_logged_cycles_give_their_costs_back_and_predict_lengths_left_out() -> None:
    rng = np.random.default_rng(0)
    fitted = fit_cycle_cost([logged(length, rng) for length in (1, 2, 3, 5, 7)])
    assert fitted.verify.kind == "line"
    assert fitted.serial == pytest.approx(1.5e-3, rel=0.1)
    assert fitted.parallel == pytest.approx(2e-3, rel=0.15)
    assert fitted.verify.each == pytest.approx(0.4e-3, rel=0.2)
    assert fitted.error is not None
    assert fitted.error.sizes == 5
    assert fitted.error.worst < 0.02
    # Median of 1 + 0.03 Exp(1): about 1.02.
    truth = 2 * 1.5e-3 + 2e-3 + 10e-3 + 0.4e-3 * 7 + 1e-6 * 300 + 0.5e-3
    assert float(fitted.seconds(6, 7, 300)) == pytest.approx(1.02 * truth, rel=0.02)


def test_a_fitted_cost_becomes_a_profile_that_says_its_error() -> None:
    rng = np.random.default_rng(1)
    fitted = fit_cycle_cost([logged(length, rng, steps=None) for length in (1, 3, 7)])
    profile = fitted.to_profile(0.012, "t", "d", "cpu", "float32")
    assert profile.verify_nodes == (2, 4, 8)
    assert profile.draft_parallel_seconds == 0
    assert profile.relative_error == fitted.error.rms  # type: ignore[union-attr]
    seconds = float(fitted.seconds(3, 4, fitted.context))
    assert profile.cycle_seconds(3, 4) == pytest.approx(seconds)
    assert json.loads(json.dumps(profile.to_json()))["relative_error"] == profile.relative_error


def test_logs_of_two_drafters_or_one_length_or_without_times_are_refused() -> None:
    rng = np.random.default_rng(2)
    with pytest.raises(InputError, match="traces of one drafter"):
        fit_cycle_cost([logged(3, rng), logged(5, rng, steps=1)])
    with pytest.raises(InputError, match="numbers of verified tokens"):
        fit_cycle_cost([logged(3, rng)])
    with pytest.raises(InputError, match="no three like cycles"):
        fit_cycle_cost([Trace.from_rows([])])
