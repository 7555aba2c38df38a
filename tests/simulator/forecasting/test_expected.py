"""What dynamic trees promised beside what they gave: the same cycles on both sides, limits by prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gumiho_simulator.forecasting.expected import expected_tau
from gumiho_simulator.forecasting.summary import summarize
from gumiho_theory import Trace

MakeTrace = Callable[..., Trace]


def promising(trace: Trace, promise: np.ndarray) -> Trace:
    missing = tuple(name for name in trace.missing if name != "expected_accepted")
    return replace(trace, expected_accepted=promise, missing=missing)


def test_both_are_means_over_complete_cycles_that_have_a_promise(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(0), prompts=20, eos_share=0.5)
    promise = np.random.default_rng(1).uniform(0, 5, trace.n_cycles)
    promise[::7] = np.nan
    found = expected_tau(promising(trace, promise), np.random.default_rng(0))
    assert found is not None
    kept = [i for i in range(trace.n_cycles) if trace.censored_at[i] == -1 and i % 7]
    assert found.expected == pytest.approx(1 + np.mean([promise[i] for i in kept]))
    assert found.measured == pytest.approx(1 + np.mean([trace.accepted[i] for i in kept]))


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_the_limits_tell_a_calibrated_promise_from_another(traces: MakeTrace, bias: float) -> None:
    """Paired, they are narrow although prompts differ: the promise knows how hard each cycle is."""
    rng = np.random.default_rng(2)
    trace = traces(rng, prompts=40)
    promise = np.maximum(trace.accepted + rng.normal(bias, 0.5, trace.n_cycles), 0)
    promise += bias - (promise - trace.accepted).mean()  # what cutting at 0 added
    values = summarize(promising(trace, np.maximum(promise, 0))).to_json()
    low, high = values["expected_tau_error_ci"]
    assert low < values["expected_tau_error"] < high
    assert (low <= 0 <= high) == (bias == 0.0)
    assert high - low < (values["tau_ci"][1] - values["tau_ci"][0]) / 2


def test_traces_without_promises_and_single_prompts_have_none(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(0), prompts=1)
    assert summarize(trace).expected_tau is None and summarize(trace).expected_tau_error_ci is None
    alone = summarize(promising(trace, np.ones(trace.n_cycles)))
    assert alone.expected_tau == 2.0 and alone.expected_tau_error_ci is None
