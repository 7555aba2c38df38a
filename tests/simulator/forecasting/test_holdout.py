"""Prompts held out: every task gives its share, the same ones for a seed, and few of them have no floor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_simulator.forecasting.holdout import hold_out, sampling_errors, split_prompts
from gumiho_theory import Trace

MakeTrace = Callable[..., Trace]


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.floats(0.05, 0.95), st.integers(0, 2**32))
def test_the_split_gives_each_task_and_the_whole_their_share(sizes: list[int], holdout: float, seed: int) -> None:
    rows = [
        {
            "prompt_id": f"{task}-{i}",
            "task": f"task {task}",
            "turn": 0,
            "cycle": 0,
            "position": 0,
            "drafted": 1,
            "nodes": 2,
            "accepted": 0,
            "committed": 1,
        }
        for task, size in enumerate(sizes)
        for i in range(size)
    ]
    held = split_prompts(Trace.from_rows(rows), holdout, np.random.default_rng(seed))
    by_task = Counter(int(prompt.partition("-")[0]) for prompt in held)
    for task, size in enumerate(sizes):
        assert abs(by_task[task] - size * holdout) < 1.0 + 1e-9
    assert abs(len(held) - sum(sizes) * holdout) <= 0.5 + 1e-9


@pytest.mark.slow
def test_a_handful_of_prompts_has_no_sampling_floor_rather_than_one_of_zero(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(0), prompts=6)
    few, enough = trace.select(trace.prompts[:4]), trace.select(trace.prompts[:5])
    assert sampling_errors(few, np.random.default_rng(0)) is None
    assert np.median(sampling_errors(enough, np.random.default_rng(0))) > 0


def test_both_sides_keep_the_order_of_the_log_and_share_no_prompt(trace: Trace) -> None:
    split = hold_out(trace, 0.3, 7)
    assert sorted((*split.fit, *split.held)) == sorted(trace.prompts)
    for side in (split.fit, split.held):
        assert list(side) == [prompt for prompt in trace.prompts if prompt in side]
    assert split == hold_out(trace, 0.3, 7)
