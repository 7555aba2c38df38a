"""Replay from every-position logs: a plain loop finds the same cycles, and what cannot be told is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from gumiho_simulator import replay as replay_structures
from gumiho_simulator.commands import register
from gumiho_simulator.replaying.as_trace import replay_trace
from gumiho_simulator.replaying.cycles import ReplayedCycles, replay_cycles
from gumiho_theory import ChainStructure, DynamicTree, EveryPositionLog, InputError, StaticTree, Structure
from replay_by_numpy import replay_by_numpy

STOP = 7
FACTS = {"top_k": 3, "temperature": 0.0, "candidates": "top", "stop_ids": [STOP]}


def output(
    rng: np.random.Generator, name: str, tokens: int, depth: int, eos: bool = False, room: int = 99, behind: int = 99
) -> list[dict[str, Any]]:
    """Rows of an output of so many tokens with random ranks.

    The context has `room` positions from the first token on; without `eos` a stop id stands `behind` tokens later.
    """
    rows = []
    ends = tokens if eos else tokens + min(behind, depth)  # of the known text, the first token being number 1
    stopped = eos or behind <= depth
    for number in range(1, tokens + (not eos)):
        drafted = int(np.clip(room - number, 0, depth))
        known = min(ends - number, drafted)
        true = [STOP if stopped and number + d == ends else 0 for d in range(1, known + 1)]
        rank = rng.choice([1, 1, 1, 2, 3, 4, 0], size=known)
        q = [float(2.0 ** -(r or 9)) for r in rank]
        top_q = [[0.5, 0.25, 0.125]] * known
        rows.append(
            {
                "prompt_id": name,
                "task": None,
                "turn": 0,
                "position": 10 + number,
                "drafted": drafted,
                "stop_reason": None,
                "true_token": [*true, *[None] * (drafted - known)],
                "rank": [*(int(r) or None for r in rank), *[None] * (drafted - known)],
                "q_draft": [*q, *[None] * (drafted - known)],
                "top_q": [*top_q, *[None] * (drafted - known)],
            }
        )
    rows[-1]["stop_reason"] = "eos" if eos else "length"
    return rows


@st.composite
def logs(draw: st.DrawFn) -> EveryPositionLog:
    rng, depth = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(1, 4))
    rows: list[dict[str, Any]] = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        tokens, eos = draw(st.integers(2, 12)), draw(st.booleans())
        room = draw(st.integers(tokens, tokens + 6))
        rows += output(rng, name, tokens, depth, eos, room, draw(st.integers(1, 9)))
    order = rng.permutation(len(rows)) if draw(st.booleans()) else range(len(rows))  # prompts may interleave
    rows = sorted((rows[i] for i in order), key=lambda row: row["position"]) if draw(st.booleans()) else rows
    return EveryPositionLog.from_rows(rows, FACTS)


@st.composite
def trees(draw: st.DrawFn) -> ChainStructure | StaticTree:
    if draw(st.booleans()):
        return ChainStructure(draw(st.integers(1, 4)))
    leaves = draw(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=5))
    return StaticTree(tuple({tuple(leaf[:n]) for leaf in leaves for n in range(1, len(leaf) + 1)}))


def by_loop(log: EveryPositionLog, paths: Sequence[tuple[int, ...]]) -> list[tuple[int, int, bool]]:
    """(row, accepted, complete) of each cycle, walked one node at a time."""
    depth = max(map(len, paths))
    cycles = []
    for name in log.prompts:
        rows = [row for row in range(log.n_rows) if log.prompt_id[row] == name]
        eos = log.stop_reason[rows[-1]] == "eos"
        start = 0
        while start < (len(rows) if eos else len(rows) - 1):
            row = rows[start]
            path: tuple[int, ...] = ()
            while len(path) < log.drafted[row] and (*path, int(log.rank[row, len(path)])) in paths:
                path = (*path, int(log.rank[row, len(path)]))
            stop = bool(path) and log.true_token[row, len(path) - 1] == STOP
            cycles.append((row, len(path), bool(log.drafted[row] >= depth and not stop)))
            start += len(path) + 1
    return sorted(cycles)


def listed(cycles: ReplayedCycles) -> list[tuple[int, int, bool]]:
    return sorted(
        zip(cycles.row.tolist(), cycles.accepted.tolist(), cycles.complete.tolist(), strict=True)  # type: ignore[arg-type]
    )


@given(logs(), trees())
@settings(max_examples=100, deadline=None)
def test_the_cycles_are_those_that_a_plain_loop_walks(log: EveryPositionLog, tree: ChainStructure | StaticTree) -> None:
    if tree.depth > log.depth:
        with pytest.raises(InputError, match=f"depth {tree.depth}, wanted 1 to {log.depth}"):
            replay_cycles(log, tree)
        return
    cycles, slow = replay_cycles(log, tree), by_loop(log, tree.paths)
    assert listed(cycles) == slow
    complete = [accepted for _, accepted, whole in slow if whole]
    counts = cycles.counts(log)
    assert counts.tau() == (pytest.approx(1 + np.mean(complete)) if complete else None)
    assert (counts.cycles.sum(), counts.complete_cycles.sum()) == (len(slow), len(complete))


@given(logs(), trees(), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_the_compiled_walk_finds_the_lengths_and_ties_of_plain_numpy(
    log: EveryPositionLog, tree: ChainStructure | StaticTree, seed: int
) -> None:
    if tree.depth > log.depth:
        return
    rng = np.random.default_rng(seed)
    known = np.isfinite(log.q_draft)
    q = np.where(known, rng.choice([0.5, 0.25], log.q_draft.shape), np.nan)
    top = np.where(known[:, :, None], rng.choice([0.5, 0.25, 0.125], log.top_q.shape), np.nan)
    log = replace(log, q_draft=q, top_q=top)
    cycles, slow = replay_cycles(log, tree), replay_by_numpy(log, tree)
    for fast, plain in zip((cycles.row, cycles.accepted, cycles.tied), slow, strict=True):
        assert fast.tolist() == plain.tolist()


@given(logs(), trees())
@settings(max_examples=60, deadline=None)
def test_a_replayed_trace_holds_the_loop_s_cycles_and_every_token_of_the_text(
    log: EveryPositionLog, tree: ChainStructure | StaticTree
) -> None:
    if tree.depth > log.depth:
        return
    trace, slow = replay_trace(log, tree), by_loop(log, tree.paths)
    row = {(name, position): n for n, (name, position) in enumerate(zip(log.prompt_id, log.position, strict=True))}
    starts = [row[place] for place in zip(trace.prompt_id, trace.position, strict=True)]
    assert sorted(zip(starts, trace.accepted.tolist(), trace.complete.tolist(), strict=True)) == slow
    for name in trace.prompts:
        mine, own = trace.prompt_id == name, np.flatnonzero(log.prompt_id == name)
        eos = log.stop_reason[own[-1]] == "eos"
        assert trace.committed[mine].sum() == len(own) - 1 + eos
        assert trace.stop_reason[mine][-1] == log.stop_reason[own[-1]]
    if isinstance(tree, ChainStructure):
        ranks = np.where(trace.at_risk(), log.rank[starts, : trace.depth], 0)
        assert (trace.rank == ranks).all()
        # Accepted positions of a chain are first candidates, the one refused is not.
        assert all((trace.rank[c, : trace.accepted[c]] == 1).all() for c in range(trace.n_cycles))
    else:
        assert "rank" in trace.missing


@pytest.fixture
def log() -> EveryPositionLog:
    rng = np.random.default_rng(3)
    rows = [row for i in range(6) for row in output(rng, f"p{i}", 40, 4, eos=i == 2)]
    for row in rows:
        row["accepted"], row["censored"] = [1], [0]
    return EveryPositionLog.from_rows(rows, FACTS | {"structures": ["tree:total=9,top_k=2,depth=3,mlp_topk=4"]})


def test_a_dynamic_tree_is_read_off_the_log_or_refused(log: EveryPositionLog) -> None:
    cycles = replay_cycles(log, "tree:total=9,top_k=2,depth=3,mlp_topk=4")
    assert (cycles.accepted == 1).all()
    assert np.diff(cycles.row)[:10].tolist() == [2] * 10
    with pytest.raises(InputError, match="one of the log's own structures: tree:total=9"):
        replay_cycles(log, DynamicTree(10, 2, 3, 4))
    with pytest.raises(InputError, match="settled depth"):
        replay_cycles(log, "auto")
    with pytest.raises(InputError, match="depth 0"):
        replay_cycles(log, "chain:0")


def test_a_longer_chain_never_has_less_accepted_from_the_same_place(log: EveryPositionLog) -> None:
    taus = [row.tau for row in replay_structures(log, ["chain:1", "chain:2", "chain:4"])]
    assert taus[0] < taus[1] < taus[2]  # type: ignore[operator]


def test_a_length_that_hangs_on_a_tie_is_not_called_exact(log: EveryPositionLog) -> None:
    """The true token and another are equally probable: which of them the drafter took is not in the ranks."""
    rank, q, top = log.rank.copy(), log.q_draft.copy(), log.top_q.copy()
    rank[0, 0], q[0, 0], top[0, 0] = 1, 0.5, [0.5, 0.5, 0.0]
    tied = replace(log, rank=rank, top_q=top, q_draft=q)
    (row,) = replay_structures(tied, ["chain:1"])
    assert not row.exact and row.note == "1 cycles hang on candidates of equal probability"
    # Where both ranks are drafted and end there, it does not matter.
    (row,) = replay_structures(tied, [StaticTree(((1,), (2,)))])
    assert row.exact and row.note is None
    (row,) = replay_structures(tied, [StaticTree(((1,), (2,), (1, 1)))])
    assert not row.exact


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"temperature": 1.0, "candidates": "sampled"}, "candidates: found 'sampled', wanted 'top'"),
        ({"temperature": 1.0, "candidates": None}, "candidates: found None"),
        ({"temperature": None}, "temperature: found None"),
        ({"temperature": "0"}, "temperature: found '0'"),
        ({"stop_ids": None}, "stop_ids: found None"),
        ({"stop_ids": [-1]}, "stop_ids"),
    ],
)
def test_logs_that_do_not_say_enough_are_refused(log: EveryPositionLog, facts: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replay_cycles(replace(log, provenance=log.provenance | facts), "chain:2")


def test_at_temperature_above_0_top_candidates_replay_given_the_text(log: EveryPositionLog) -> None:
    (row,) = replay_structures(replace(log, provenance=log.provenance | {"temperature": 0.7}), ["chain:2"])
    assert row.exact and row.note == "given the logged text, which was drawn"


def test_where_an_output_ends_must_be_known(log: EveryPositionLog) -> None:
    unknown = log.stop_reason.copy()
    unknown[39] = None
    with pytest.raises(InputError, match="row 39, column stop_reason: found null"):
        replay_cycles(replace(log, stop_reason=unknown), "chain:2")
    gap = log.position.copy()
    gap[5:40] += 1
    with pytest.raises(InputError, match="row 5, column position"):
        replay_cycles(replace(log, position=gap), "chain:2")
    none = np.full(log.n_rows, None, dtype=object)
    with pytest.raises(InputError, match="column stop_reason: found no such column"):
        replay_cycles(replace(log, stop_reason=none, missing=(*log.missing, "stop_reason")), "chain:2")


def test_a_logged_length_that_no_such_structure_has_is_refused(log: EveryPositionLog) -> None:
    tree = Structure.parse(log.structures[0])
    for value, found in ((-1, "null"), (4, "4")):
        accepted, censored = log.accepted.copy(), log.censored.copy()
        accepted[3, 0], censored[3, 0] = value, min(value, 0)
        with pytest.raises(InputError, match=f"row 3, column accepted, .*found {found}, wanted a length of 0 to 3"):
            replay_cycles(replace(log, accepted=accepted, censored=censored), tree)


def test_an_empty_log_has_no_structure_as_deep() -> None:
    with pytest.raises(InputError, match="wanted 1 to 0"):
        replay_cycles(EveryPositionLog.from_rows([], FACTS), "chain:1")


def test_the_command_takes_several_structures_and_prints_the_contract_s_keys(
    log: EveryPositionLog, tmp_path: Path
) -> None:
    log.write(tmp_path / "log.parquet")
    StaticTree(((1,), (2,), (1, 1))).write(tmp_path / "tree.json")
    app = typer.Typer()
    register(app)
    asked = ["chain:1", f"static:{tmp_path / 'tree.json'}", "chain:4"]
    arguments = ["replay", str(tmp_path / "log.parquet"), "--structures", *asked]
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    rows = json.loads(result.stdout)["rows"]
    assert [row["structure"] for row in rows] == asked
    assert {"structure", "tau", "lo", "hi", "cycles", "exact"} <= set(rows[0])
    assert rows[0]["tau"] == replay_structures(log, ["chain:1"])[0].tau
    assert all(row["lo"] < row["tau"] < row["hi"] and row["exact"] for row in rows)
    shown = CliRunner().invoke(app, arguments, catch_exceptions=False).stdout
    assert "bonus included" in shown and "chain:4" in shown


def test_a_tree_chosen_by_the_very_prompts_is_replayed_with_a_warning(log: EveryPositionLog, tmp_path: Path) -> None:
    trace = replay_trace(log, "chain:3")
    trace.write(tmp_path / "trace.parquet")
    app = typer.Typer()
    register(app)
    made = ["tree", str(tmp_path / "trace.parquet"), "--nodes", "6", "-o", str(tmp_path / "tree.json")]
    CliRunner().invoke(app, made, catch_exceptions=False)
    tree = f"static:{tmp_path / 'tree.json'}"
    (row,) = replay_structures(log, [tree])
    assert row.note == "in sample: the tree was chosen by 6 of these 6 prompts, so its tau may be too high"
    others = replace(log, prompt_id=np.array([f"other {name}" for name in log.prompt_id], dtype=object))
    (row,) = replay_structures(others, [tree])
    assert row.note is None
    # A tree file that says nothing of prompts, or nonsense, is a tree all the same.
    facts = json.loads((tmp_path / "tree.json").read_text())
    for silent in ({}, {"made_from": 3}, {"made_from": {"prompt_hashes": [1, None]}}):
        kept = {key: value for key, value in facts.items() if key != "made_from"}
        (tmp_path / "tree.json").write_text(json.dumps(kept | silent))
        assert replay_structures(log, [tree])[0].note is None
