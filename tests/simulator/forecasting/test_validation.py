"""The hold-out: what is split, what is compared, and that it does not look at what it predicts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gumiho_simulator import fit, forecast, validate
from gumiho_theory import InputError, Trace

MakeTrace = Callable[..., Trace]


def test_rows_are_the_forecast_of_one_half_and_the_measurement_of_the_other(trace: Trace) -> None:
    done = validate(trace, seed=4)
    train, test = trace.select(done.fit_prompts), trace.select(done.holdout_prompts)
    assert set(done.fit_prompts).isdisjoint(done.holdout_prompts)
    assert train.n_cycles + test.n_cycles == trace.n_cycles
    for row in done.rows:
        expected = forecast(fit(train, row.model), ["chain:7"], len(done.holdout_prompts), 4)[0]
        assert (row.predicted, row.lo, row.hi) == (expected.tau, expected.lo, expected.hi)
        assert row.measured == test.tau()
        assert row.relative_error == pytest.approx(expected.tau / test.tau() - 1)  # type: ignore[operator]
        assert row.inside == (expected.lo <= test.tau() <= expected.hi)  # type: ignore[operator]


def test_errors_are_summed_up_over_the_rows(trace: Trace) -> None:
    done = validate(trace)
    errors = [abs(row.relative_error or 0.0) for row in done.rows]
    assert done.median_abs_error == pytest.approx(np.median(errors))
    assert done.worst_abs_error == max(errors)
    assert done.coverage == np.mean([row.inside for row in done.rows])


def test_splits_differ_by_seed_and_repeat_by_seed(trace: Trace) -> None:
    assert validate(trace, seed=1).holdout_prompts == validate(trace, seed=1).holdout_prompts
    assert validate(trace, seed=1).holdout_prompts != validate(trace, seed=2).holdout_prompts


def test_the_sampling_floor_is_the_median_error_of_the_truth_itself(traces: MakeTrace) -> None:
    rng = np.random.default_rng(8)
    truth = float(np.mean([traces(rng, prompts=300).tau() for _ in range(4)]))
    errors = [abs(traces(rng, prompts=32).tau() / truth - 1) for _ in range(60)]  # type: ignore[operator]
    floors = [validate(traces(rng, prompts=64), seed=seed).sampling_floor for seed in range(3)]
    # Medians of 60 errors and of 3 floors: within half as much again of one another.
    assert float(np.median(floors)) == pytest.approx(float(np.median(errors)), rel=0.5)  # type: ignore[arg-type]


def test_a_trace_without_a_structure_counts_as_a_chain(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(9), prompts=8, structure=None)
    assert validate(trace).rows[0].structure == "chain:7"


def test_a_tree_is_forecast_from_and_for_itself(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(10), prompts=8, structure="tree:total=32")
    row = validate(trace).rows[0]
    assert row.structure.startswith("tree:total=32")
    assert row.predicted is not None


def test_limits_that_cannot_be_had_are_null_not_false(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(11), prompts=4, structure="chain:9")
    done = validate(trace, models=("hazard",))
    assert done.rows[0].predicted is None
    assert done.rows[0].inside is None
    assert done.median_abs_error is None
    assert done.worst_abs_error is None
    assert done.coverage is None


def test_bad_requests_are_refused(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(12), prompts=4)
    for holdout in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(InputError, match="holdout"):
            validate(trace, holdout)
    with pytest.raises(InputError, match="at least two of each"):
        validate(trace.select(trace.prompts[:3]))
    with pytest.raises(InputError, match="'best'"):
        validate(trace, models=("best",))
