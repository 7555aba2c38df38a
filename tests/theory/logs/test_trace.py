from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_theory import InputError, Trace

seeds = st.integers(0, 2**32 - 1)
Rows = list[dict[str, Any]]
MakeRows = Callable[..., Rows]
MakeRow = Callable[..., dict[str, Any]]


def naive_counts(rows: Rows, depth: int) -> dict[str, tuple[list[int], list[int]]]:
    """At-risk and accepted by prompt, position by position from the words of the convention."""
    counts: dict[str, tuple[list[int], list[int]]] = {}
    for row in rows:
        at_risk, accepted = counts.setdefault(row["prompt_id"], ([0] * depth, [0] * depth))
        for i in range(1, depth + 1):
            censored = row["censored_at"] is not None and row["censored_at"] < i
            if row["drafted"] >= i and row["accepted"] >= i - 1 and not censored:
                at_risk[i - 1] += 1
                accepted[i - 1] += row["accepted"] >= i
    return counts


@given(seeds)
def test_counts_by_prompt_equal_a_naive_walk_over_the_rows(random_rows: MakeRows, seed: int) -> None:
    rows = random_rows(seed)
    trace = Trace.from_rows(rows)
    counts = trace.counts_by_prompt()
    naive = naive_counts(rows, trace.depth)
    assert list(naive) == list(trace.prompts) == list(counts.groups)
    for index, prompt in enumerate(counts.groups):
        assert counts.at_risk is not None and counts.accepted is not None
        assert counts.at_risk[index].tolist() == naive[prompt][0]
        assert counts.accepted[index].tolist() == naive[prompt][1]
        mine = [row for row in rows if row["prompt_id"] == prompt]
        complete = [row["accepted"] for row in mine if row["censored_at"] is None]
        assert counts.cycles[index] == len(mine)
        assert counts.complete_cycles[index] == len(complete)
        assert counts.total_accepted[index] == sum(complete)


@given(seeds)
def test_tau_is_one_plus_mean_accepted_over_uncensored_cycles(random_rows: MakeRows, seed: int) -> None:
    rows = random_rows(seed)
    trace = Trace.from_rows(rows)
    complete = [row["accepted"] for row in rows if row["censored_at"] is None]
    if not complete:
        assert trace.tau() is None and trace.tau_macro() is None
        return
    assert trace.tau() == pytest.approx(1 + sum(complete) / len(complete))
    by_prompt = [
        [r["accepted"] for r in rows if r["prompt_id"] == p and r["censored_at"] is None] for p in trace.prompts
    ]
    assert trace.tau_macro() == pytest.approx(np.mean([1 + np.mean(a) for a in by_prompt if a]))


@given(seeds)
def test_without_censoring_tau_equals_one_plus_the_sum_of_survival_rates(random_rows: MakeRows, seed: int) -> None:
    rows = [row for row in random_rows(seed) if row["censored_at"] is None]
    if rows:
        trace = Trace.from_rows(rows)
        survival = trace.counts_by_prompt().survival()
        # Positions that nobody reaches have no rate and add nothing.
        assert trace.tau() == pytest.approx(1 + np.nansum(survival))


def test_kaplan_meier_recovers_the_true_rates_where_dividing_by_all_cycles_does_not(row: MakeRow) -> None:
    rng = np.random.default_rng(11)
    p, n = np.array([0.8, 0.7, 0.9]), 20_000
    rows = []
    for cycle in range(n):
        drafted = int(rng.integers(1, 4))
        length = int(np.cumprod(rng.random(drafted) < p[:drafted]).sum())
        censored = drafted if drafted < 3 else None
        rows.append(
            row(
                prompt_id=f"p{cycle}",
                drafted=drafted,
                accepted=length,
                committed=length + 1,
                censored_at=censored,
            )
        )
    trace = Trace.from_rows(rows)
    counts = trace.counts_by_prompt()
    assert counts.at_risk is not None
    spread = np.sqrt(p * (1 - p) / counts.at_risk.sum(axis=0))
    assert (np.abs(counts.conditional() - p) < 5 * spread).all()
    divided = np.array([(trace.accepted >= i).mean() for i in (1, 2, 3)])
    assert divided[2] < 0.5 * counts.survival()[2]


def test_an_accepted_eos_keeps_its_position_at_risk_and_leaves_tau(row: MakeRow) -> None:
    trace = Trace.from_rows(
        [
            row(accepted=3, committed=4),
            row(cycle=1, position=14, accepted=2, committed=2, censored_at=2, stop_reason="eos"),
        ]
    )
    assert trace.at_risk().tolist() == [[True, True, True], [True, True, False]]
    assert trace.counts_by_prompt().conditional().tolist() == [1.0, 1.0, 1.0]
    assert trace.tau() == 4.0
    assert trace.complete.tolist() == [True, False]


def test_a_draft_shrunk_by_the_context_counts_in_the_rates_it_tried(row: MakeRow) -> None:
    trace = Trace.from_rows(
        [
            row(),
            row(
                cycle=1,
                position=13,
                drafted=1,
                nodes=2,
                accepted=0,
                committed=1,
                censored_at=1,
                stop_reason="context",
            ),
        ]
    )
    assert trace.at_risk().tolist() == [[True, True, True], [True, False, False]]
    assert trace.counts_by_prompt().conditional().tolist() == [0.5, 1.0, 0.0]
    assert trace.tau() == 3.0


def test_rates_are_undefined_where_nobody_was_at_risk(row: MakeRow) -> None:
    counts = Trace.from_rows([row(accepted=0, committed=1)]).counts_by_prompt()
    assert np.array_equal(counts.conditional(), [0.0, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(counts.survival(), [0.0, np.nan, np.nan], equal_nan=True)


def test_macro_tau_weighs_prompts_alike_and_micro_tau_cycles(row: MakeRow) -> None:
    rows = [row(cycle=i, position=i, accepted=3, committed=4) for i in range(9)]
    trace = Trace.from_rows([*rows, row(prompt_id="b", accepted=0, committed=1)])
    assert trace.tau() == pytest.approx(3.7)
    assert trace.tau_macro() == pytest.approx(2.5)


def test_no_cycles_are_a_trace_without_tau() -> None:
    trace = Trace.from_rows([])
    assert (trace.n_cycles, trace.depth, trace.prompts, trace.tau(), trace.tau_macro()) == (
        0,
        0,
        (),
        None,
        None,
    )
    assert trace.counts_by_prompt().conditional().shape == (0,)


@given(seeds)
def test_select_keeps_the_cycles_of_the_prompts_asked_for(random_rows: MakeRows, seed: int) -> None:
    rows = random_rows(seed)
    trace = Trace.from_rows(rows, {"structure": "chain:5"})
    some = trace.prompts[::2]
    part = trace.select(some)
    assert part.prompts == some
    assert part.cycle.tolist() == [row["cycle"] for row in rows if row["prompt_id"] in some]
    assert part.provenance == trace.provenance
    assert part.rank.shape == (part.n_cycles, part.depth)
    whole = trace.counts_by_prompt().select(some)
    own = part.counts_by_prompt()
    assert own.total_accepted.tolist() == whole.total_accepted.tolist()
    assert own.at_risk is not None and whole.at_risk is not None
    assert own.at_risk.tolist() == whole.at_risk[:, : part.depth].tolist()


def test_select_refuses_a_prompt_that_does_not_occur(row: MakeRow) -> None:
    with pytest.raises(InputError, match="'z'"):
        Trace.from_rows([row()]).select(["a", "z"])


def test_prompts_may_interleave_as_in_batched_decoding(row: MakeRow) -> None:
    trace = Trace.from_rows(
        [
            row(),
            row(prompt_id="b"),
            row(cycle=1, position=13, stop_reason="length"),
            row(prompt_id="b", cycle=1, position=13),
            row(turn=1, position=40),
        ]
    )
    assert trace.prompts == ("a", "b")


def test_nulls_have_their_stand_ins_in_memory(row: MakeRow) -> None:
    trace = Trace.from_rows([row(rank=[1, 4, None], q_draft=[0.5, 0.25, None], draft_seconds=None, task=None)])
    assert trace.rank.tolist() == [[1, 4, 0]]
    assert np.array_equal(trace.q_draft, [[0.5, 0.25, np.nan]], equal_nan=True)
    assert np.isnan(trace.p_target).all() and np.isnan(trace.draft_seconds).all()
    assert trace.censored_at.tolist() == [-1]
    assert trace.task.tolist() == [None]
    assert trace.missing == ("verify_seconds", "other_seconds", "p_target", "expected_accepted")


def test_numpy_scalars_and_arrays_are_welcome_in_rows(row: MakeRow) -> None:
    given_row = row(accepted=np.int32(2), draft_seconds=np.float32(0.5), q_draft=np.array([0.5, 0.25, 0.125]))
    trace = Trace.from_rows([given_row])
    assert trace.draft_seconds.tolist() == [0.5]
    assert trace.q_draft.tolist() == [[0.5, 0.25, 0.125]]


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"accepted": 4}, "accepted"),
        ({"accepted": -1}, "accepted"),
        ({"drafted": -1}, "drafted"),
        ({"drafted": 513, "nodes": 600}, "drafted"),
        ({"nodes": 3}, "nodes"),
        ({"committed": 4}, "committed"),
        ({"committed": -1}, "committed"),
        ({"turn": -1}, "turn"),
        ({"position": -1}, "position"),
        ({"censored_at": 1}, "censored_at"),
        ({"censored_at": 4}, "censored_at"),
        ({"censored_at": -1}, "censored_at"),
        ({"stop_reason": "tired"}, "stop_reason"),
        ({"draft_seconds": -0.1}, "draft_seconds"),
        ({"verify_seconds": float("inf")}, "verify_seconds"),
        ({"expected_accepted": -0.1}, "expected_accepted"),
        ({"expected_accepted": float("inf")}, "expected_accepted"),
        ({"rank": [1, 1, 0]}, "rank"),
        ({"rank": [1, -1, None]}, "rank"),
        ({"rank": [1, 1]}, "rank"),
        ({"rank": "111"}, "rank"),
        ({"rank": [1, 1.0, None]}, "rank"),
        ({"q_draft": [0.5, 1.5, None]}, "q_draft"),
        ({"p_target": [0.5, float("inf"), None]}, "p_target"),
        ({"accepted": 1, "committed": 1, "rank": [1, 1, 2]}, "rank"),
        ({"accepted": 1, "committed": 1, "q_draft": [0.5, 0.5, 0.5]}, "q_draft"),
        ({"censored_at": 2, "p_target": [0.5, 0.5, 0.5]}, "p_target"),
        ({"prompt_id": 3}, "prompt_id"),
        ({"prompt_id": None}, "prompt_id"),
        ({"accepted": None}, "accepted"),
        ({"accepted": True}, "accepted"),
        ({"accepted": 2.0}, "accepted"),
        ({"position": 2**63}, "position"),
        ({"draft_seconds": "1"}, "draft_seconds"),
        ({"task": 3}, "task"),
    ],
)
def test_a_bad_value_is_named_by_row_and_column(row: MakeRow, changes: dict[str, Any], column: str) -> None:
    with pytest.raises(InputError, match=rf"^row 1, column {column}\b"):
        Trace.from_rows([row(prompt_id="ok"), row(**changes)])


def test_a_value_at_a_depth_never_reached_is_named_by_its_depth(row: MakeRow) -> None:
    with pytest.raises(InputError, match="row 0, column rank, depth 3"):
        Trace.from_rows([row(accepted=1, committed=1, rank=[1, 1, 2])])


@pytest.mark.parametrize(
    ("second", "column"),
    [
        ({"cycle": 2, "position": 13}, "cycle"),
        ({"cycle": 0, "position": 13}, "cycle"),
        ({"cycle": 1, "position": 10}, "position"),
    ],
)
def test_cycles_of_a_prompt_count_from_zero_and_move_forward(row: MakeRow, second: dict[str, Any], column: str) -> None:
    with pytest.raises(InputError, match=f"row 2, column {column}"):
        Trace.from_rows([row(), row(prompt_id="b"), row(**second)])


def test_the_first_cycle_of_a_prompt_is_number_zero(row: MakeRow) -> None:
    with pytest.raises(InputError, match="row 0, column cycle"):
        Trace.from_rows([row(cycle=1)])


def test_only_the_last_cycle_of_an_output_has_a_stop_reason(row: MakeRow) -> None:
    with pytest.raises(InputError, match="row 0, column stop_reason"):
        Trace.from_rows([row(stop_reason="eos"), row(cycle=1, position=13)])


def test_unknown_and_absent_keys_are_refused(row: MakeRow) -> None:
    with pytest.raises(InputError, match="row 0: found unknown column 'acepted'"):
        Trace.from_rows([row(acepted=3)])
    incomplete = row()
    del incomplete["nodes"]
    with pytest.raises(InputError, match="row 1: found no column 'nodes'"):
        Trace.from_rows([row(), incomplete])


def test_arrays_are_private_read_only_copies(row: MakeRow) -> None:
    trace = Trace.from_rows([row()])
    accepted = trace.accepted.copy()
    copy = replace(trace, accepted=accepted)
    accepted[0] = 99
    assert copy.accepted.tolist() == [2]
    with pytest.raises(ValueError, match="read-only"):
        copy.accepted[0] = 1


def test_arrays_of_the_wrong_shape_or_type_are_refused(row: MakeRow) -> None:
    trace = Trace.from_rows([row()])
    for changes in (
        {"accepted": np.array([2, 2])},
        {"accepted": np.array([2.5])},
        {"rank": np.zeros((1, 4), dtype=int)},
    ):
        with pytest.raises(InputError, match=f"column {next(iter(changes))}"):
            replace(trace, **changes)
    with pytest.raises(InputError, match="missing"):
        replace(trace, missing=("accepted",))


def test_provenance_names_the_schema_and_refuses_another(row: MakeRow) -> None:
    assert Trace.from_rows([row()], {"seed": 3}).provenance == {"schema": "gumiho.trace/1", "seed": 3}
    with pytest.raises(InputError, match="schema"):
        Trace.from_rows([row()], {"schema": "gumiho.trace/2"})


@settings(max_examples=20)
@given(seeds)
def test_at_risk_positions_form_a_prefix_of_each_draft(random_rows: MakeRows, seed: int) -> None:
    risk = Trace.from_rows(random_rows(seed)).at_risk()
    assert not (risk[:, 1:] & ~risk[:, :-1]).any()
