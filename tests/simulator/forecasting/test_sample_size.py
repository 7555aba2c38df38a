"""Comparing two logs: the paired interval, the variance behind it, and the prompts it takes, by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from gumiho_simulator.forecasting.sample_size import compare, prompts_needed
from gumiho_theory import AcceptanceCounts, InputError, Trace


def counts(accepted: NDArray[np.int64], cycles: NDArray[np.int64], prefix: str = "p") -> AcceptanceCounts:
    groups = tuple(f"{prefix}{i}" for i in range(len(cycles)))
    return AcceptanceCounts(groups, cycles, accepted, cycles)


def draw(prompts: int, rng: np.random.Generator, gain: float) -> tuple[AcceptanceCounts, AcceptanceCounts]:
    """Two drafters on the same prompts, which are easy or hard for both; B accepts `gain` more a cycle in the mean."""
    easy = rng.normal(2.0, 0.6, prompts)
    logs = []
    for more in (0.0, gain):
        cycles = rng.integers(15, 45, prompts)
        logs.append(counts(rng.poisson(np.maximum(easy + more, 0.1) * cycles), cycles))
    return logs[0], logs[1]


def test_the_number_of_prompts_needed_has_limits_and_none_where_the_difference_may_be_0() -> None:
    rng = np.random.default_rng(2)
    near, far = (compare(_counts(rng, 0.0), _counts(rng, gain)) for gain in (0.05, 1.5))
    assert near.prompts_needed_hi is None and near.lo <= 0 <= near.hi
    assert near.prompts_needed_lo <= near.prompts_needed  # type: ignore[operator]
    assert far.prompts_needed_lo <= far.prompts_needed <= far.prompts_needed_hi  # type: ignore[operator]


def _counts(rng: np.random.Generator, gain: float) -> AcceptanceCounts:
    cycles = np.full(30, 40)
    total = rng.poisson(40 * (1 + gain) * rng.gamma(20, 1 / 20, 30))
    return AcceptanceCounts(tuple(f"p{i}" for i in range(30)), cycles, total, cycles)


def test_the_difference_is_that_of_the_pooled_taus(traces: Callable[..., Trace]) -> None:
    a, b = (traces(np.random.default_rng(seed), 30).counts_by_prompt() for seed in (1, 2))
    found = compare(a, b)
    assert (found.tau_a, found.tau_b) == (a.tau(), b.tau())
    assert found.difference == pytest.approx(b.tau() - a.tau())  # type: ignore[operator]
    assert found.lo < found.difference < found.hi
    swapped = compare(b, a)
    assert swapped.difference == -found.difference
    assert swapped.prompts_needed == found.prompts_needed


def test_the_standard_error_is_the_spread_of_resampled_differences() -> None:
    a, b = draw(200, np.random.default_rng(3), 0.2)
    found = compare(a, b, n_resamples=8000)
    assert found.paired
    assert (found.hi - found.lo) / 2 == pytest.approx(1.96 * found.standard_error, rel=0.06)


def test_pairing_needs_far_fewer_prompts_than_two_sets() -> None:
    a, b = draw(150, np.random.default_rng(4), 0.2)
    apart = AcceptanceCounts(tuple(f"q{i}" for i in range(150)), b.cycles, b.total_accepted, b.complete_cycles)
    together, separate = compare(a, b), compare(a, apart)
    assert together.paired and not separate.paired
    assert together.prompts_needed is not None and separate.prompts_needed is not None
    assert separate.prompts_needed > 3 * together.prompts_needed
    assert separate.hi - separate.lo > 1.5 * (together.hi - together.lo)


def test_only_shared_prompts_are_compared_where_there_are_some() -> None:
    a, b = draw(30, np.random.default_rng(5), 0.3)
    part = b.select(b.groups[10:])
    found = compare(a, part)
    assert (found.paired, found.prompts_a, found.prompts_b, found.dropped) == (True, 20, 20, 10)
    same = compare(a.select(a.groups[10:]), part)
    assert (found.difference, found.lo, found.hi) == (same.difference, same.lo, same.hi)


def test_prompts_without_a_complete_cycle_say_nothing() -> None:
    a, b = draw(12, np.random.default_rng(6), 0.3)
    empty = np.append(b.cycles, 3), np.append(b.total_accepted, 0), np.append(b.complete_cycles, 0)
    longer = AcceptanceCounts((*b.groups, "cut"), *empty)
    assert compare(a, longer).to_json() == compare(a, b).to_json()


def test_equal_logs_need_more_prompts_than_there_are() -> None:
    a, _ = draw(12, np.random.default_rng(7), 0.0)
    found = compare(a, a)
    assert (found.difference, found.lo, found.hi, found.prompts_needed) == (0.0, 0.0, 0.0, None)
    assert not found.different


def test_the_number_is_that_of_the_textbook() -> None:
    # (1.959964 + 0.841621)^2 = 7.849: a difference of half a standard deviation.
    assert prompts_needed(0.5, 1.0) == 32
    assert prompts_needed(-0.5, 1.0) == 32
    assert prompts_needed(5.0, 1.0) == 2
    assert prompts_needed(0.5, 0.0) == 2


def test_one_prompt_on_a_side_is_refused() -> None:
    a, b = draw(5, np.random.default_rng(8), 0.3)
    other = counts(np.array([4]), np.array([2]), "z")
    with pytest.raises(InputError) as caught:
        compare(a, other)
    assert caught.value.place == "log B"
    with pytest.raises(InputError) as caught:
        compare(other, b)
    assert caught.value.place == "log A"


def test_with_so_many_prompts_the_difference_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(9)
    gain = 0.15
    asked = [compare(*draw(400, rng, gain), n_resamples=10) for _ in range(12)]
    # The formula at the true difference: estimated ones vary, and so would the numbers.
    variance = np.mean([one.standard_error**2 * one.prompts_a for one in asked])
    needed = prompts_needed(gain, float(variance))
    assert needed is not None and 20 < needed < 100
    found = 0
    for _ in range(300):
        one = compare(*draw(needed, rng, gain), n_resamples=2)
        found += abs(one.difference) > 1.959964 * one.standard_error
    assert found / 300 == pytest.approx(0.8, abs=0.06)
