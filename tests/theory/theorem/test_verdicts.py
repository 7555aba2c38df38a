"""A verdict on logs: rates, hypothesis, its probability, the best move."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import AcceptanceCounts, InputError, Trace, expected_accepted, sensitivity
from gumiho_theory.extensions.dependence import HiddenStates
from gumiho_theory.theorem.best_move import STEP
from gumiho_theory.theorem.check import hypothesis_form
from gumiho_theory.theorem.verdicts import Verdict, verdict


def counts_of(lengths: list[np.ndarray], depth: int) -> AcceptanceCounts:
    """Counts of complete cycles, one array of accepted lengths a prompt."""
    risk = [[int((a >= i - 1).sum()) for i in range(1, depth + 1)] for a in lengths]
    hits = [[int((a >= i).sum()) for i in range(1, depth + 1)] for a in lengths]
    cycles = [len(a) for a in lengths]
    names = tuple(f"p{i}" for i in range(len(lengths)))
    return AcceptanceCounts(names, cycles, [int(a.sum()) for a in lengths], cycles, risk, hits)  # type: ignore[arg-type]


def drawn(p: list[float], prompts: int, cycles: int, seed: int, spread: float = 0.0) -> AcceptanceCounts:
    rng = np.random.default_rng(seed)
    rates = np.clip(np.array(p) + spread * rng.standard_normal((prompts, 1)), 0, 1)
    return counts_of([np.cumprod(rng.random((cycles, len(p))) < r, axis=1).sum(axis=1) for r in rates], len(p))


def naive(counts: AcceptanceCounts, seed: int, resamples: int, early: int) -> tuple[float, float]:
    """Shares of resampled logs that descend, or satisfy either form: one log after another, group by group."""
    assert counts.at_risk is not None and counts.accepted is not None
    rng = np.random.default_rng(seed)
    groups = len(counts.groups)
    descend, either = 0, 0
    for _ in range(resamples):
        picked = rng.integers(0, groups, groups)
        risk, hits = counts.at_risk[picked].sum(axis=0), counts.accepted[picked].sum(axis=0)
        p = [h / r for h, r in zip(hits, risk, strict=True) if r]
        falls = all(a >= b for a, b in itertools.pairwise(p))
        late = p[early:]
        dominated = min(p[:early]) >= max(late, default=0) and all(a >= b for a, b in itertools.pairwise(late))
        descend += falls
        either += falls or dominated
    return descend / resamples, either / resamples


def test_a_log_of_two_cycles_says_that_it_is_one() -> None:
    found = verdict(counts_of([np.array([3]), np.array([3])], 3))
    assert found.probability == 1.0 and found.groups == 2
    notes = " ".join(found.notes)
    assert "all of this rests on 2 cycles" in notes and "only 2 groups" in notes
    assert "all resampled logs are alike" in notes
    assert found.to_json()["notes"] == list(found.notes)


def test_a_log_of_many_cycles_needs_no_excuse_and_one_of_few_deep_ones_names_the_position() -> None:
    assert verdict(drawn([0.7, 0.69, 0.66, 0.64], prompts=30, cycles=40, seed=1, spread=0.1)).notes == ()
    (note,) = verdict(drawn([0.7, 0.05, 0.05], prompts=30, cycles=20, seed=1)).notes
    assert note.startswith("from position 3 on it rests on ")


def test_probabilities_equal_a_naive_bootstrap_of_whole_prompts() -> None:
    for p, seed in (([0.7, 0.69, 0.66, 0.64], 1), ([0.6, 0.8, 0.5, 0.48], 2), ([0.8, 0.79, 0.8], 3)):
        counts = drawn(p, prompts=30, cycles=40, seed=seed, spread=0.1)
        found = verdict(counts, seed=0, resamples=4000)
        for early in range(1, len(p)):
            descend, either = naive(counts, 99, 4000, early)
            # Two independent bootstraps of 4000.
            assert found.probability == pytest.approx(descend, abs=5 * np.sqrt(0.5 / 4000))
            assert found.by_early[early - 1].probability == pytest.approx(either, abs=5 * np.sqrt(0.5 / 4000))
        assert 0 < found.by_early[0].probability < 1 or p[0] == 0.6


def test_doubt_comes_from_prompts_that_differ_not_from_their_many_cycles() -> None:
    def log(*prompts: tuple[int, int]) -> AcceptanceCounts:
        risk, hits = [[200, first] for first, _ in prompts], [[first, second] for first, second in prompts]
        totals = [first + second for first, second in prompts]
        return AcceptanceCounts(tuple("abcdefgh"), [200] * 8, totals, [200] * 8, risk, hits)  # type: ignore[arg-type]

    # The same pooled rates, 0.7 and 0.664, from prompts all alike, or from two kinds of prompt.
    alike = verdict(log(*[(140, 93)] * 8), resamples=4000)
    apart = verdict(log(*[(180, 126)] * 4, *[(100, 60)] * 4), resamples=4000)
    assert alike.rates == apart.rates
    assert alike.probability == 1
    # The rates fall iff at least 4 of the 8 drawn are of the first kind.
    assert apart.probability == pytest.approx(163 / 256, abs=5 * np.sqrt(0.25 / 4000))


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_rates_forms_and_worth_are_those_of_the_pooled_log(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    counts = drawn(rng.random(depth).round(1).tolist(), prompts=3, cycles=50, seed=seed)
    pooled = counts.conditional()
    reached = pooled[~np.isnan(pooled)]
    if len(reached) < 2:
        return
    found = verdict(counts, resamples=20)
    assert found.rates == tuple(reached)
    assert found.hypothesis == ("descending" if all(np.diff(reached) <= 0) else None)
    assert (found.hypothesis is None) == bool(found.violations)
    for early, one in enumerate(found.by_early, start=1):
        assert (one.early, (one.hypothesis, one.violations)) == (early, hypothesis_form(reached, early))
    worth = sensitivity(reached)
    for k, pair in enumerate(found.pairs):
        assert (pair.worth, pair.next_worth) == pytest.approx((worth[k], worth[k + 1]), abs=1e-12)
        assert pair.falls == (reached[k] >= reached[k + 1])
        assert pair.earlier_worth_more == (pair.worth >= pair.next_worth)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_best_move_is_the_best_of_all_moves_carried_out(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    counts = drawn(rng.random(depth).tolist(), prompts=2, cycles=60, seed=seed)
    p = counts.conditional()
    p = p[~np.isnan(p)]
    if len(p) < 2:
        return
    gains = {}
    for b in range(len(p)):
        for a in range(len(p)):
            if a != b:
                amount = min(p[b], 1 - p[a], STEP)
                moved = p.copy()
                moved[b] -= amount
                moved[a] += amount
                gains[b + 1, a + 1] = expected_accepted(np.clip(moved, 0, 1)) - expected_accepted(p)
    best = verdict(counts, resamples=10).best_move
    if best is None:
        assert max(gains.values()) <= 1e-12
    else:
        assert best.gain == pytest.approx(max(gains.values()), abs=1e-12)
        assert best.gain == pytest.approx(gains[best.source, best.destination], abs=1e-12)
        assert best.probability is not None and 0 <= best.probability <= 1


def test_a_clear_best_move_is_certain_and_may_go_to_a_later_position() -> None:
    sure = verdict(drawn([0.9, 0.8, 0.6, 0.3], prompts=40, cycles=300, seed=5)).best_move
    assert sure is not None
    assert (sure.source, sure.destination, sure.amount, sure.probability) == (4, 1, STEP, 1.0)
    # Nothing is left to gain at position 1; position 2 stands before a long row of sure ones.
    late = verdict(drawn([1.0, 0.3, 1.0, 1.0, 1.0], prompts=10, cycles=200, seed=5)).best_move
    assert late is not None
    assert late.destination == 2


def test_pooled_rates_of_a_mixture_fail_the_hypothesis_for_certain_and_earlier_is_worth_more_all_the_same() -> None:
    states = HiddenStates.mixture("1/2, 1/2", [["9/10"] * 4, ["1/2"] * 4])
    rng = np.random.default_rng(7)
    found = verdict(counts_of([states.sample(2000, rng) for _ in range(30)], 4))
    assert found.hypothesis is None
    assert found.probability == 0
    assert found.rates == pytest.approx([float(p) for p in states.conditional()], abs=0.02)
    for pair in found.pairs:
        assert not pair.falls and pair.falls_probability == 0
        assert pair.earlier_worth_more and pair.earlier_worth_more_probability == 1


def test_a_trace_and_its_counts_get_the_same_verdict_and_the_same_seed_the_same(
    random_rows: Callable[..., Any],
) -> None:
    rows = [row | {"prompt_id": f"{row['prompt_id']}-{seed}"} for seed in range(12) for row in random_rows(seed)]
    trace = Trace.from_rows(rows)
    found = verdict(trace, seed=3, resamples=100)
    assert found == verdict(trace.counts_by_prompt(), seed=3, resamples=100)
    assert found.groups == len(trace.prompts)
    assert found.seed == 3 and found.resamples == 100


def test_one_group_gives_rates_and_no_probability() -> None:
    found = verdict(drawn([0.8, 0.7, 0.6], prompts=1, cycles=500, seed=1))
    assert (found.groups, found.resamples, found.probability) == (1, 0, None)
    assert all(one.probability is None for one in found.by_early)
    assert all(p.falls_probability is None and p.earlier_worth_more_probability is None for p in found.pairs)
    assert found.best_move is not None and found.best_move.probability is None


def test_resampled_logs_that_never_reach_a_position_are_judged_by_those_they_reach() -> None:
    # One prompt in three goes beyond position 1, where its rate is the higher one.
    counts = AcceptanceCounts(
        ("a", "b", "c"),
        [10, 10, 10],
        [0, 0, 10],
        [10, 10, 10],
        [[10, 0], [10, 0], [10, 5]],
        [[0, 0], [0, 0], [5, 5]],  # type: ignore[arg-type]
    )
    found = verdict(counts, resamples=4000)
    assert found.hypothesis is None
    # Without the third prompt, (2/3)^3 of the resampled logs, nothing breaks the hypothesis.
    assert found.probability == pytest.approx(8 / 27, abs=5 * np.sqrt(0.25 / 4000))
    assert found.by_early[0].probability == found.probability


def test_groups_without_a_cycle_and_positions_never_reached_are_left_out() -> None:
    counts = AcceptanceCounts(
        ("a", "b", "c"),
        [4, 4, 0],
        [6, 5, 0],
        [4, 4, 0],
        [[4, 3, 0], [4, 3, 0], [0, 0, 0]],
        [[3, 3, 0], [3, 2, 0], [0, 0, 0]],  # type: ignore[arg-type]
    )
    found = verdict(counts)
    assert (found.groups, found.rates, found.cycles_at_risk) == (2, (6 / 8, 5 / 6), (8, 6))


def test_nothing_to_gain_means_no_best_move() -> None:
    assert verdict(counts_of([np.full(5, 2), np.full(5, 2)], 2)).best_move is None


def test_json_is_flat_apart_from_its_tables_and_finite() -> None:
    found = verdict(drawn([0.6, 0.7, 0.4], prompts=5, cycles=60, seed=2), resamples=50)
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert data["violations"] == list(found.violations) and len(found.violations) == 1
    assert data["by_early"][1]["early"] == 2
    assert set(data["pairs"][0]) == {f for f in vars(found.pairs[0])}
    assert data["best_move"]["destination"] == 1
    assert isinstance(found, Verdict)


def test_a_file_of_a_log_gets_the_verdict_of_the_log(tmp_path: Path, random_rows: Callable[..., Any]) -> None:
    trace = Trace.from_rows(
        [row | {"prompt_id": f"{row['prompt_id']}-{s}"} for s in range(9) for row in random_rows(s)]
    )
    trace.write(tmp_path / "trace.parquet")
    trace.counts_by_prompt().write(tmp_path / "counts.json")
    for name in ("trace.parquet", "counts.json"):
        assert verdict(tmp_path / name) == verdict(str(tmp_path / name)) == verdict(trace)
    with pytest.raises(InputError, match="missing.json: found"):
        verdict(tmp_path / "missing.json")


@pytest.mark.parametrize(
    "counts, options, message",
    [
        (AcceptanceCounts(("a",), [3], [2], [3]), {}, "log: found no counts by position"),  # type: ignore[arg-type]
        (counts_of([np.zeros(4, dtype=int)] * 2, 3), {}, "log: found 1 positions with a cycle at risk"),
        (AcceptanceCounts((), [], [], [], *[np.zeros((0, 3), dtype=int)] * 2), {}, "log: found 0 positions"),  # type: ignore[arg-type]
        (counts_of([np.ones(4, dtype=int)] * 2, 3), {"seed": -1}, "seed: found -1"),
        (counts_of([np.ones(4, dtype=int)] * 2, 3), {"resamples": 0}, "resamples: found 0"),
    ],
)
def test_logs_that_say_nothing_are_refused(counts: AcceptanceCounts, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        verdict(counts, **options)
