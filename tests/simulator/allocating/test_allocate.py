"""Allocations: exact enumeration against brute force, logged ones under a profile, front, regret, refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from gumiho_simulator import allocate
from gumiho_simulator.allocating.files import read_profiles, read_traces
from gumiho_simulator.allocating.heads import Allocation, HeadCosts, pareto_front
from gumiho_simulator.allocating.logged import allocate_traces
from gumiho_simulator.figures.allocations import plot_front
from gumiho_theory import CostProfile, InputError, StaticTree, Trace, tau

PROFILE = CostProfile(
    target="t",
    drafter="d",
    device="cpu",
    dtype="float32",
    baseline_seconds=0.010,
    verify_nodes=(1, 2, 8, 64),
    verify_seconds=(0.010, 0.011, 0.012, 0.030),
    draft_serial_seconds=0.002,
    draft_parallel_seconds=0.003,
    serial_steps=2,
    other_seconds=0.0005,
    serial_layers=2,
    layer_seconds=0.0006,
    parallel_heads=5,
    head_seconds=0.0004,
)
FIRST = replace(PROFILE, draft_fixed_seconds=0.001)
SERIAL = (0.9, 0.88, 0.85, 0.8, 0.8)
PARALLEL = (0.8, 0.7, 0.6, 0.5, 0.4)


def test_chains_of_every_allocation_are_tried_and_the_fastest_is_taken() -> None:
    found = allocate(PROFILE, {"serial": SERIAL, "parallel": PARALLEL}, 5)
    by_hand = {}
    for serial, parallel in itertools.product(range(6), repeat=2):
        if 1 <= serial + parallel <= 5:
            rates = SERIAL[:serial] + PARALLEL[serial : serial + parallel]
            heads = 0.003 + (parallel - 5) * 0.0004 if parallel else 0.0
            seconds = serial * 0.002 + heads + PROFILE.verify_at(serial + parallel + 1) + 0.0005
            by_hand[serial, parallel] = (float(tau(rates)), float(tau(rates)) * 0.010 / seconds)
    assert len(found.rows) == len(by_hand) == 20
    for row in found.rows:
        assert (row.tau, row.speedup) == pytest.approx(by_hand[row.serial, row.parallel])
    assert found.best.speedup == max(speed for _, speed in by_hand.values())
    assert found.best.structure == f"chain:{found.best.serial + found.best.parallel}"


def test_trees_are_the_best_of_their_size_as_found_one_by_one() -> None:
    serial = np.array([[0.6, 0.2, 0.1], [0.5, 0.2, 0.1], [0.4, 0.2, 0.1]])
    parallel = np.array([[0.5, 0.3], [0.4, 0.2], [0.3, 0.1]])
    found = allocate(PROFILE, {"serial": serial, "parallel": parallel}, 3, (4, 9, 3000))
    padded = np.pad(parallel, ((0, 0), (0, 1)))
    assert {row.nodes for row in found.rows} == {4, 9}
    for row in found.rows:
        table = np.concatenate([serial[: row.serial], padded[row.serial : row.serial + row.parallel]])
        tree = StaticTree.best(table, int(row.nodes)).tree
        rates = [
            0.0,
            *(table[depth - 1, rank - 1] for depth, rank in zip(tree.depths[1:], tree.ranks[1:], strict=True)),
        ]
        assert row.tau == pytest.approx(1 + tree.expected_accepted(rates))


def test_one_type_of_head_alone_is_enough() -> None:
    serial = allocate(PROFILE, {"serial": SERIAL}, 3)
    assert [(row.serial, row.parallel) for row in serial.rows] == [(1, 0), (2, 0), (3, 0)]
    parallel = allocate(PROFILE, {"parallel": PARALLEL}, 2)
    assert [(row.serial, row.parallel, row.serial_layers) for row in parallel.rows] == [(0, 1, 0), (0, 2, 0)]


@pytest.mark.parametrize(
    ("rates", "positions", "nodes", "place"),
    [
        ({}, 3, (), "rates by head type"),
        ({"mlp": SERIAL}, 3, (), "rates by head type"),
        ({"serial": SERIAL}, 6, (), "serial rates"),
        ({"serial": SERIAL}, 0, (), "positions"),
        ({"serial": (0.5, 1.5)}, 2, (), "serial heads: rank rates, depth 2, rank 1"),
        ({"serial": ((0.5, 0.6),)}, 1, (4,), "serial heads: rank rates, depth 1"),
        ({"serial": ((0.5, 0.3),)}, 1, (), "nodes"),
        ({"serial": ((0.5, 0.3),)}, 1, (1,), "nodes"),
        ({"serial": ((0.5, 0.3),)}, 1, (9,), "nodes"),
        ({"serial": (float("nan"),)}, 1, (), "serial heads: rank rates, depth 1, rank 1"),
    ],
)
def test_rates_that_say_nothing_are_refused(rates: Any, positions: int, nodes: Any, place: str) -> None:
    with pytest.raises(InputError) as caught:
        allocate(PROFILE, rates, positions, nodes)
    assert caught.value.place == place


def test_costs_of_other_heads_are_carried_over_or_assumed_by_name() -> None:
    known = HeadCosts(PROFILE)
    assert known.serial_seconds(3) == pytest.approx(0.0026)
    assert known.parallel_seconds(7) == pytest.approx(0.0038)
    assert known.draft_seconds(1, 2, 2, 5) == pytest.approx(0.002)
    assert known.draft_seconds(7, 2, 2, 5) == pytest.approx(0.007)
    assert not known.assumptions
    first = HeadCosts(FIRST)
    # Once a draft, however many steps; nothing where no serial part takes in the accepted tokens.
    assert [first.draft_seconds(depth, 7, 2, 0) for depth in (0, 1, 7)] == pytest.approx([0.0, 0.003, 0.015])
    assert first.draft_seconds(7, 2, 2, 5) == pytest.approx(0.008)
    assert first.draft_seconds(5, 0, 2, 5) == pytest.approx(0.003)
    assert not first.assumptions
    assert known.draft_seconds(7, 7, 2, 0) == pytest.approx(0.014)
    assert "(2 in the profile)" in next(iter(known.assumptions))
    estimated = HeadCosts(replace(PROFILE, estimated=("draft_serial_seconds",)))
    assert estimated.draft_seconds(7, 7, 2, 0) == pytest.approx(0.014) and not estimated.assumptions
    bare = HeadCosts(replace(PROFILE, layer_seconds=None, head_seconds=None, parallel_heads=None))
    assert bare.serial_seconds(3) == pytest.approx(0.003)
    assert bare.parallel_seconds(7) == PROFILE.draft_parallel_seconds
    assert len(bare.assumptions) == 2
    with pytest.raises(InputError, match="draft_parallel_seconds"):
        HeadCosts(replace(PROFILE, draft_parallel_seconds=0.0)).parallel_seconds(1)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_the_front_holds_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    rows = [Allocation(1, 0, 1, 2, float(t), None, None, float(c), t / c) for t, c in points]
    front = pareto_front(rows)
    for row in rows:
        beaten = any(
            other.tau >= row.tau
            and other.cycle_seconds <= row.cycle_seconds
            and (other.tau, other.cycle_seconds) != (row.tau, row.cycle_seconds)
            for other in rows
        )
        on_front = any((row.tau, row.cycle_seconds) == (one.tau, one.cycle_seconds) for one in front)
        assert beaten != on_front
    assert [one.tau for one in front] == sorted(one.tau for one in front)
    assert max(rows, key=lambda row: row.speedup).speedup in [one.speedup for one in front]


def with_shape(trace: Trace, **facts: Any) -> Trace:
    known = {"method": "gumiho", "drafter": "d", "target": "t", "structure": f"chain:{trace.depth}", "temperature": 0.0}
    return replace(trace, provenance={**trace.provenance, **known, **facts})


def shape(steps: int, layers: int, heads: int) -> dict[str, int]:
    return {"serial_steps": steps, "serial_layers": layers, "parallel_heads": heads}


@pytest.fixture(scope="module")
def logs(traces: Callable[..., Trace]) -> dict[str, Trace]:
    """Return four allocations on the same 40 prompts."""
    rates = {"a": (0.9, 0.85, 0.5, 0.4), "b": (0.9, 0.85, 0.8, 0.5), "c": (0.8, 0.5), "e": (0.9, 0.8, 0.8)}
    made = {name: traces(np.random.default_rng(3), 40, some, mean_cycles=20) for name, some in rates.items()}
    return {
        "a": with_shape(made["a"], drafter_shape=shape(2, 2, 2)),
        "b": with_shape(made["b"], drafter_shape=shape(3, 2, 5)),
        "c": with_shape(made["c"], drafter_shape=shape(1, 3, 4)),
        "e": with_shape(made["e"], method="eagle", drafter_shape={"serial_layers": 1}),
    }


def test_logged_allocations_are_read_from_their_provenance(logs: dict[str, Trace]) -> None:
    found = allocate_traces(FIRST, logs)
    read = {row.source: (row.serial, row.parallel, row.serial_layers, row.nodes) for row in found.rows}
    assert read == {"a": (2, 2, 2, 5), "b": (3, 1, 2, 5), "c": (1, 1, 3, 3), "e": (3, 0, 1, 4)}
    rows = {row.source: row for row in found.rows}
    seconds = 0.001 + 2 * 0.002 + (0.003 - 3 * 0.0004) + PROFILE.verify_at(5) + 0.0005
    assert rows["a"].cycle_seconds == pytest.approx(seconds)
    for name, row in rows.items():
        assert row.tau == pytest.approx(logs[name].tau())
        assert row.speedup == pytest.approx(row.tau * 0.010 / row.cycle_seconds)
        assert row.lo is not None and row.hi is not None
        assert row.speedup_lo is not None and row.speedup_hi is not None
        assert row.lo < row.tau < row.hi
        # Every cycle of a chain takes the same time under a profile: the speed-up's interval is that of tau.
        np.testing.assert_allclose([row.speedup_lo, row.speedup_hi], np.array([row.lo, row.hi]) * row.speedup / row.tau)
    assert found.best is max(found.rows, key=lambda row: row.speedup)
    assert not found.warnings
    assert not found.assumptions


def test_step_times_of_one_drafter_taken_for_others_are_an_assumption_that_is_said(logs: dict[str, Trace]) -> None:
    mixed = {"a": logs["a"], "e": with_shape(logs["e"], drafter="tiny:eagle", drafter_shape={"serial_layers": 1})}
    mixed["e"] = replace(mixed["e"], provenance={**mixed["e"].provenance, "method": "eagle"})
    (said,) = allocate_traces(FIRST, mixed).assumptions
    assert said == "step times of d, the profile's drafter, hold for tiny:eagle too"


def test_the_loss_by_choosing_is_that_of_plain_resampling_paired_by_prompt(logs: dict[str, Trace]) -> None:
    found = allocate_traces(PROFILE, logs, seed=5, n_resamples=300)
    prompts = tuple(dict.fromkeys(p for log in logs.values() for p in sorted(set(log.prompt_id[log.complete]))))
    drawn = np.random.default_rng(5).integers(len(prompts), size=(300, len(prompts)))
    weights = np.array([np.bincount(row, minlength=len(prompts)) for row in drawn])
    seconds = {row.source: row.cycle_seconds for row in found.rows}
    speeds = []
    for name, log in logs.items():
        counts = log.counts_by_prompt().select(prompts)
        mean = (weights @ counts.total_accepted) / (weights @ counts.complete_cycles)
        speeds.append((1 + mean) * 0.010 / seconds[name])
    table = np.array(speeds)
    chosen = table[list(logs).index(str(found.best.source))]
    assert found.regret == pytest.approx((table.max(axis=0) - chosen).mean())
    assert found.best_probability == pytest.approx((chosen == table.max(axis=0)).mean())


def test_a_clear_winner_is_chosen_without_regret_and_twins_are_a_toss_up(traces: Callable[..., Trace]) -> None:
    def log(rates: tuple[float, ...], seed: int) -> Trace:
        return with_shape(traces(np.random.default_rng(seed), 60, rates), drafter_shape=shape(2, 2, 1))

    clear = allocate_traces(PROFILE, {"good": log((0.95, 0.9, 0.9), 0), "bad": log((0.5, 0.4, 0.4), 1)})
    assert (clear.best.source, clear.regret, clear.best_probability) == ("good", 0.0, 1.0)
    twins = allocate_traces(PROFILE, {"one": log((0.8, 0.8, 0.8), 2), "two": log((0.8, 0.8, 0.8), 3)})
    assert twins.best_probability is not None and twins.regret is not None
    assert 0.3 < twins.best_probability < 0.999
    assert twins.regret > 0


def test_traces_that_say_too_little_are_left_out_by_name(logs: dict[str, Trace]) -> None:
    bad = {
        "method.parquet": with_shape(logs["a"], method="medusa"),
        "shape.parquet": with_shape(logs["a"], drafter_shape=None),
        "layers.parquet": with_shape(logs["a"], drafter_shape={"serial_steps": 2, "parallel_heads": 5}),
        "heads.parquet": with_shape(logs["a"], drafter_shape=shape(1, 2, 1)),
        "empty.parquet": with_shape(Trace.from_rows([]), drafter_shape=shape(1, 2, 1)),
    }
    found = allocate_traces(PROFILE, {**bad, "a": logs["a"]})
    assert [row.source for row in found.rows] == ["a"]
    assert len(found.warnings) == 5
    for name, warning in zip(bad, found.warnings, strict=True):
        assert f"left out: {name}: " in warning
    with pytest.raises(InputError, match="a trace that can be used"):
        allocate_traces(PROFILE, bad)
    small = replace(PROFILE, verify_nodes=(1, 2), verify_seconds=(0.01, 0.011))
    with pytest.raises(InputError, match="as measured"):
        allocate_traces(small, {"a": logs["a"]})


def test_layers_of_a_profile_that_does_not_say_are_those_of_its_own_drafter(logs: dict[str, Trace]) -> None:
    silent = replace(PROFILE, serial_layers=None, layer_seconds=None, parallel_heads=None, head_seconds=None)
    deeper = with_shape(logs["a"], drafter="deeper", drafter_shape=shape(2, 4, 2))
    known = allocate_traces(silent, {"a": logs["a"], "deeper": deeper})
    assert known.rows[1].cycle_seconds - known.rows[0].cycle_seconds == pytest.approx(2 * 0.002)
    assert any("in proportion to its layers (2 in the profile)" in text for text in known.assumptions)
    unknown = allocate_traces(replace(silent, drafter="x"), {"a": logs["a"], "deeper": deeper})
    assert unknown.rows[1].cycle_seconds == unknown.rows[0].cycle_seconds
    assert any("does not say how many layers" in text for text in unknown.warnings)


def test_traces_of_different_targets_or_cut_short_are_warned_of(logs: dict[str, Trace]) -> None:
    found = allocate_traces(PROFILE, {"a": logs["a"], "b": with_shape(logs["b"], target="u", complete=False)})
    assert list(found.warnings) == ["traces differ in target: t, u", "b was cut short"]


def test_an_uncertain_profile_widens_the_speed_ups_and_leaves_tau(logs: dict[str, Trace]) -> None:
    sure, unsure = (
        allocate_traces(profile, {"a": logs["a"]}).best for profile in (PROFILE, replace(PROFILE, relative_error=0.1))
    )
    assert (sure.lo, sure.hi) == (unsure.lo, unsure.hi)
    assert sure.speedup_lo is not None and unsure.speedup_lo is not None
    assert np.log(unsure.speedup / unsure.speedup_lo) == pytest.approx(
        np.hypot(np.log(sure.speedup / sure.speedup_lo), 1.959964 * 0.1)
    )


def test_a_single_prompt_has_no_interval_and_no_regret(logs: dict[str, Trace]) -> None:
    one = logs["a"].select([logs["a"].prompts[0]])
    found = allocate_traces(PROFILE, {"a": one})
    assert (found.best.lo, found.best.speedup_hi, found.regret, found.best_probability) == (None, None, None, None)


def test_a_folder_is_read_whatever_else_lies_in_it(logs: dict[str, Trace], tmp_path: Path) -> None:
    logs["a"].write(tmp_path / "a.parquet")
    (tmp_path / "broken.parquet").write_text("no table")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "sub.parquet").mkdir()
    read, warnings = read_traces(tmp_path)
    assert list(read) == ["a.parquet"]
    assert len(warnings) == 1 and "broken.parquet" in warnings[0]
    for place in (tmp_path / "absent", tmp_path / "notes.txt", tmp_path / "sub.parquet"):
        with pytest.raises(InputError) as caught:
            read_traces(place)
        assert caught.value.place == str(place)


@pytest.mark.parametrize("interval", [True, False])
def test_the_figure_draws_every_allocation_and_the_front_in_order(logs: dict[str, Trace], interval: bool) -> None:
    plt.switch_backend("agg")
    rates = {"serial": SERIAL, "parallel": PARALLEL}
    found = allocate_traces(PROFILE, logs) if interval else allocate(PROFILE, rates, 5)
    ax = plot_front(found)
    drawn = [container[0].get_xdata().size for container in ax.containers]
    assert sum(drawn) == len(found.rows)
    assert ax.containers[-1][0].get_ydata().tolist() == [row.tau for row in found.front]
    assert "milliseconds" in ax.get_xlabel()
    low, high = ax.get_ylim()
    assert low < min(row.lo or row.tau for row in found.rows)
    assert high > max(row.hi or row.tau for row in found.rows)
    plt.close("all")


def test_a_folder_of_files_that_cannot_be_read_says_why_of_each(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError, match=r"left out: .*a\.parquet") as caught:
        read_traces(tmp_path)
    assert caught.value.place == str(tmp_path)


def test_each_trace_is_put_under_the_profile_of_its_own_drafter(logs: dict[str, Trace]) -> None:
    own = {name: with_shape(logs[name], drafter=name) for name in "abc"}
    slow = replace(PROFILE, drafter="b", baseline_seconds=0.02, verify_seconds=(0.02, 0.022, 0.024, 0.06))
    found = allocate_traces({"a": replace(PROFILE, drafter="a"), "b": slow}, own, n_resamples=50)
    for row, profile in zip(found.rows, (PROFILE, slow), strict=True):
        assert row.source is not None
        expected = allocate_traces(profile, {row.source: own[row.source]}, n_resamples=50).best
        assert (row.source, row.cycle_seconds, row.speedup) == (
            expected.source,
            expected.cycle_seconds,
            pytest.approx(expected.speedup),
        )
        assert row.speedup_lo is not None and row.speedup_hi is not None
        assert row.speedup_lo < row.speedup < row.speedup_hi
    assert "provenance, drafter: found 'c', wanted one with a profile: a, b" in found.warnings[0]
    assert not any("hold for" in said for said in found.assumptions)
    profiles = {"a": replace(PROFILE, drafter="a"), "b": replace(slow, device="gpu"), "x": replace(slow, dtype="none")}
    mixed = allocate_traces(profiles, own)
    assert "profiles differ in device: cpu; gpu" in mixed.warnings
    assert not any("dtype" in said for said in mixed.warnings)  # that of x is not used


def test_a_profile_of_another_target_is_an_assumption(logs: dict[str, Trace]) -> None:
    own = {"a": with_shape(logs["a"], drafter="d", target="tiny")}
    assert not allocate_traces(replace(FIRST, target="tiny"), own).assumptions
    for profile in (replace(FIRST, target="llama"), {"d": replace(FIRST, target="llama")}):
        (said,) = allocate_traces(profile, own).assumptions
        assert said == "step times of llama, the profile's target, hold for tiny too"


def test_a_drafter_that_is_no_name_has_no_profile(logs: dict[str, Trace]) -> None:
    odd = {"a": with_shape(logs["a"], drafter=["d"]), "b": with_shape(logs["b"], drafter="d")}
    found = allocate_traces({"d": PROFILE}, odd)
    assert [row.source for row in found.rows] == ["b"]
    assert "left out: a: provenance, drafter: found ['d'], wanted one with a profile: d" in found.warnings[0]


def test_a_folder_of_profiles_is_read_by_drafter(tmp_path: Path) -> None:
    for name in "ab":
        replace(PROFILE, drafter=name).write(tmp_path / f"{name}.json")
    assert read_profiles(tmp_path / "a.json") == replace(PROFILE, drafter="a")
    read = read_profiles(tmp_path)
    assert isinstance(read, dict) and {name: one.drafter for name, one in read.items()} == {"a": "a", "b": "b"}
    PROFILE.write(tmp_path / "c.json")
    replace(PROFILE, drafter="a").write(tmp_path / "d.json")
    with pytest.raises(InputError, match=r"d\.json: found drafter 'a', as in a\.json"):
        read_profiles(tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="0 .json files"):
        read_profiles(tmp_path / "none")
    (tmp_path / "none" / "gone.json").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"gone\.json: found No such file"):
        read_profiles(tmp_path / "none")
    for read_any in (read_profiles, read_traces):
        with pytest.raises(InputError, match="File name too long|no folder"):
            read_any("x" * 300)
