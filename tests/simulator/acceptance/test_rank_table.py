"""The rank table: static trees from ranks, against enumeration and against drafts of known ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gumiho_simulator import FitResult, fit, forecast
from gumiho_simulator.acceptance import HazardModel, Observations, RankTableModel
from gumiho_simulator.acceptance.observed.rank_counts import RankCounts
from gumiho_theory import DraftTree, InputError, StaticTree, Trace, rank_rates

PATHS = ((1,), (2,), (1, 1), (1, 2), (2, 1), (1, 1, 1))
TABLE = ((0.6, 0.15, 0.1), (0.55, 0.2, 0.05), (0.5, 0.1, 0.1))


def drafted(paths: tuple[tuple[int, ...], ...], prompts: int = 30, cycles: int = 30, seed: int = 0) -> Trace:
    """Draft with a static tree where ranks are independent of the past: every assumption of the table holds."""
    rng = np.random.default_rng(seed)
    depth = max(map(len, paths))
    rows: list[dict[str, Any]] = []
    for prompt in range(prompts):
        for cycle in range(cycles):
            ranks: list[int | None] = []
            path: tuple[int, ...] = ()
            while len(path) < depth:
                drawn = int(rng.choice(4, p=[*TABLE[len(path)], 1 - sum(TABLE[len(path)])])) + 1
                ranks.append(drawn if drawn < 4 else None)
                if (*path, drawn) not in paths:
                    break
                path = (*path, drawn)
            row = {"prompt_id": f"p{prompt}", "task": None, "turn": 0, "cycle": cycle, "position": 9 * cycle}
            row |= {"drafted": depth, "nodes": len(paths) + 1, "accepted": len(path), "committed": len(path) + 1}
            seen = len(ranks)
            row["rank"] = ranks + [None] * (depth - seen)
            row["q_draft"] = [0.5] * seen + [None] * (depth - seen)
            rows.append(row)
    chain = all(set(path) == {1} for path in paths)
    return Trace.from_rows(rows, {"structure": f"chain:{depth}" if chain else str(StaticTree(paths))})


CHAIN = ((1,), (1, 1), (1, 1, 1))


@pytest.fixture(scope="module")
def fitted() -> FitResult:
    return fit(drafted(CHAIN), "rank")


def test_the_table_is_that_of_the_theory_package(fitted: FitResult) -> None:
    trace = drafted(CHAIN)
    np.testing.assert_allclose(fitted.model.parameters["rates"], rank_rates(trace, 3).rates, rtol=1e-12)


def test_a_tree_accepts_what_its_nodes_sum_to_before_its_cycles_begin_elsewhere(
    fitted: FitResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = RankTableModel.fit(fitted.observed)
    monkeypatch.setattr(type(model.difficulty), "restarted", lambda _, rates: rates)
    rates = model.tree_rates(np.ones((1, 30)), PATHS)[0]
    table = np.array(model.parameters["rates"])
    tree = DraftTree.from_rank_paths(PATHS)
    nodes = [0.0, *(table[len(path) - 1, path[-1] - 1] for path in StaticTree(PATHS).paths)]
    assert np.cumprod(rates).sum() == pytest.approx(tree.expected_accepted(nodes), rel=1e-12)


def test_a_static_tree_s_measured_tau_lies_inside_the_interval_of_a_chain_s_log(fitted: FitResult) -> None:
    made = forecast(fitted, [str(StaticTree(PATHS))])[0]
    measured = drafted(PATHS, seed=1).tau()
    assert made.supported
    assert "behind every path" in made.note
    assert made.lo < measured < made.hi  # type: ignore[operator]
    assert made.tau == pytest.approx(measured, rel=0.05)


def test_a_chain_is_the_tree_of_first_candidates(fitted: FitResult) -> None:
    hazard = HazardModel(Observations(fitted.model.counts))
    np.testing.assert_allclose(fitted.model.conditional(3), hazard.conditional(3), atol=0.005)
    tree = fit(drafted(PATHS), "rank")
    made = forecast(tree, ["chain:2", str(StaticTree(PATHS))])
    assert made[0].tau == pytest.approx(1 + 0.6 + 0.6 * 0.55, rel=0.05)
    assert made[1].tau == pytest.approx(drafted(PATHS).tau(), rel=1e-9)


@pytest.mark.parametrize(
    ("structure", "reason"),
    [
        ("tree:total=16", "scores, of which a cycle's ranks say nothing"),
        ("static:[[1],[1,1],[1,1,1],[1,1,1,1]]", "depth 3 is the deepest"),
        ("static:[[1],[9]]", "rank 3 is the last"),
        ("chain:4", "depth 3 is the deepest"),
        ("auto", "scores"),
    ],
)
def test_what_ranks_do_not_say_is_refused_with_the_reason(fitted: FitResult, structure: str, reason: str) -> None:
    made = forecast(fitted, [structure])[0]
    assert made.tau is None
    assert reason in made.note
    assert not made.supported


def test_other_models_refuse_static_trees(fitted: FitResult) -> None:
    assert forecast(fit(drafted(CHAIN), "hazard"), [str(StaticTree(PATHS))])[0].tau is None


def test_a_model_file_holds_the_ranks(fitted: FitResult) -> None:
    again = FitResult.from_json(fitted.to_json())
    assert forecast(again, [str(StaticTree(PATHS))]) == forecast(fitted, [str(StaticTree(PATHS))])


@pytest.mark.parametrize(
    "change",
    [
        {"hits": 3},
        {"hits": [[[1]], [[1, 2]]]},
        {"at_risk": [[1]]},
        {"at_risk": [[0], [0]]},
        {"hits": [[[9]], [[0]]]},
        {"hits": [[[-1]], [[0]]]},
        {"hits": [[[0.5]], [[0]]]},
    ],
)
def test_ranks_that_are_no_counts_are_refused(change: dict[str, object]) -> None:
    good = {"at_risk": [[2], [1]], "hits": [[[1]], [[1]]]}
    assert RankCounts.from_json(good, ("a", "b")).hits.shape == (2, 1, 1)
    with pytest.raises(InputError, match="ranks"):
        RankCounts.from_json(good | change, ("a", "b"))


def test_a_trace_without_ranks_has_none() -> None:
    trace = drafted(CHAIN, prompts=2)
    rows = [{"prompt_id": "a", "turn": 0, "cycle": 0, "position": 0, "drafted": 2}]
    rows = [rows[0] | {"nodes": 3, "accepted": 1, "committed": 2}]
    assert RankCounts.of(Trace.from_rows(rows)) is None
    assert Observations.of(trace).ranks is not None
