from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import AutoStructure, ChainStructure, DraftTree, DynamicTree, InputError, StaticTree, Structure

PATHS = ((1,), (2,), (1, 1), (1, 3), (1, 1, 1))

nodes = st.integers(1, 4096)


@st.composite
def rank_rates(draw: st.DrawFn) -> np.ndarray:
    """Rates [D, R] whose rows sum to at most 1, zeros and equal ones among them, in any order of rank."""
    depth, width = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    row = st.lists(st.integers(0, 8), min_size=width, max_size=width)
    counts = np.array(draw(st.lists(row, min_size=depth, max_size=depth)), dtype=np.float64)
    return counts / (counts.sum(axis=1, keepdims=True) + draw(st.integers(1, 5)))


@st.composite
def static_trees(draw: st.DrawFn) -> StaticTree:
    rates = draw(rank_rates())
    depth, width = rates.shape
    every = sum(width**level for level in range(1, depth + 1))
    return StaticTree.best(rates, draw(st.integers(2, every + 1)))


settled = st.one_of(
    st.builds(ChainStructure, st.integers(0, 512)),
    st.builds(DynamicTree, st.integers(2, 4096), nodes, st.integers(1, 512), nodes, st.none() | nodes),
    static_trees(),
)
structures = st.one_of(settled, st.just(AutoStructure()))


@given(structures)
def test_text_and_json_lead_back_to_the_same_structure(structure: Structure) -> None:
    assert Structure.parse(str(structure)) == structure
    assert Structure.from_json(json.loads(json.dumps(structure.to_json()))) == structure


def test_depth_is_the_deepest_draft_position() -> None:
    assert ChainStructure(7).depth == 7
    assert DynamicTree(depth=5).depth == 5
    assert StaticTree(PATHS).depth == 3
    assert AutoStructure().depth is None


def test_a_tree_takes_any_of_its_settings_and_defaults_for_the_rest() -> None:
    default = DynamicTree(total=64, top_k=14, depth=7, mlp_topk=35)
    assert Structure.parse("tree:") == Structure.parse("tree") == default
    assert Structure.parse("tree:top_k=4, total=10") == DynamicTree(10, 4, 7, 35)
    assert str(default) == "tree:total=64,top_k=14,depth=7,mlp_topk=35"


def test_pruning_is_in_the_text_only_where_it_is_given() -> None:
    released = DynamicTree(total=64, top_k=14, depth=7, mlp_topk=35, pruning=5)
    assert str(released) == "tree:total=64,top_k=14,depth=7,mlp_topk=35,pruning=5"
    assert Structure.parse("tree:pruning=5") == released != DynamicTree()
    assert "pruning" not in str(DynamicTree()) and DynamicTree().pruning is None


def test_json_written_before_pruning_still_reads() -> None:
    older = {"kind": "tree", "total": 60, "top_k": 10, "depth": 6, "mlp_topk": 8}
    assert Structure.from_json(older) == DynamicTree(60, 10, 6, 8)
    assert Structure.from_json({**older, "pruning": None}) == DynamicTree(60, 10, 6, 8, None)


@pytest.mark.parametrize("pruning", [0, -1, 4097, 2.0, "5", True])
def test_pruning_has_the_bounds_of_mlp_topk(pruning: Any) -> None:
    with pytest.raises(InputError, match="structure, pruning"):
        DynamicTree(pruning=pruning)


def test_a_chain_is_the_static_tree_of_its_paths() -> None:
    assert ChainStructure(3).paths == ((1,), (1, 1), (1, 1, 1))
    assert ChainStructure(0).paths == ()
    tree, chain = StaticTree(ChainStructure(5).paths).tree, DraftTree.chain(5)
    assert tree.parents.tolist() == chain.parents.tolist()
    assert tree.ranks.tolist() == chain.ranks.tolist()


def worth(paths: tuple[tuple[int, ...], ...], rates: np.ndarray) -> float:
    """E[L] of a tree by plain loops: the sum over its nodes of the product of the rates along the path."""
    return float(sum(np.prod([rates[level, rank - 1] for level, rank in enumerate(path)]) for path in paths))


@given(rank_rates(), st.data())
def test_the_best_static_tree_is_the_best_first_tree_with_its_ranks(rates: np.ndarray, data: st.DataObject) -> None:
    depth, width = rates.shape
    total = data.draw(st.integers(2, 1 + sum(width**level for level in range(1, depth + 1))))
    best, twin = StaticTree.best(rates, total), DraftTree.best_first(rates, total)
    assert len(best.paths) == total - 1 and best.source is None
    chains = [twin.path_to(node)[1:] for node in range(1, total)]
    assert set(best.paths) == {tuple(int(twin.ranks[node]) for node in chain) for chain in chains}
    node_rates = [0.0, *(rates[d - 1, r - 1] for d, r in zip(best.tree.depths[1:], best.tree.ranks[1:], strict=True))]
    assert best.tree.expected_accepted(node_rates) == pytest.approx(worth(best.paths, rates))


@given(rank_rates().filter(lambda rates: sum(rates.shape[1] ** i for i in range(1, len(rates) + 1)) <= 12), st.data())
def test_no_tree_of_as_many_nodes_is_worth_more_than_the_best(rates: np.ndarray, data: st.DataObject) -> None:
    depth, width = rates.shape
    every = [path for level in range(1, depth + 1) for path in product(range(1, width + 1), repeat=level)]
    size = data.draw(st.integers(1, min(len(every), 5)))
    trees = (c for c in combinations(every, size) if all(path[:-1] in c or len(path) == 1 for path in c))
    assert worth(StaticTree.best(rates, size + 1).paths, rates) == pytest.approx(max(worth(c, rates) for c in trees))


def test_the_best_tree_skips_a_rank_that_is_worth_less() -> None:
    assert StaticTree.best([[0.1, 0.6], [0.5, 0.0]], 4).paths == ((1,), (2,), (2, 1))


@pytest.mark.parametrize("total", [1, 0, -3, True, 2.0, 4097])
def test_a_best_tree_needs_a_draft_token_and_a_bounded_size(total: Any) -> None:
    with pytest.raises(InputError, match="structure, total"):
        StaticTree.best([[0.5]], total)


@pytest.mark.parametrize(
    "rates", [[0.5, 0.25], [[0.5, float("nan")]], [[0.75, 0.5]], [[-0.1]], [[]], np.zeros((0, 3)), [[0.5]]], ids=repr
)
def test_rates_that_are_none_and_trees_they_cannot_fill_are_refused(rates: Any) -> None:
    with pytest.raises(InputError):
        StaticTree.best(rates, 3)


@given(settled, st.integers(0, 600))
def test_a_cut_structure_fits_its_room_and_loses_nothing_within_it(structure: Structure, room: int) -> None:
    assert structure.depth is not None
    cut = structure.cut(room)
    assert cut.depth == min(structure.depth, room)
    assert cut.cut(room) == cut
    if structure.depth <= room:
        assert cut is structure or (room == 0 and cut == structure)
    elif room == 0:
        assert cut == ChainStructure(0)
    elif isinstance(structure, DynamicTree):
        assert cut == replace(structure, depth=room)
    elif isinstance(structure, StaticTree):
        assert cut == StaticTree([path for path in structure.paths if len(path) <= room])  # type: ignore[arg-type]
    else:
        assert cut == ChainStructure(room)


def test_a_cut_static_tree_no_longer_goes_by_its_file() -> None:
    tree = StaticTree(PATHS, source="tree.json")
    assert tree.cut(3).source == tree.cut(9).source == "tree.json"  # type: ignore[attr-defined]
    assert str(tree.cut(1)) == "static:[[1],[2]]"


def test_a_structure_yet_to_be_chosen_is_cut_to_nothing_only() -> None:
    assert AutoStructure().cut(0) == ChainStructure(0)
    with pytest.raises(InputError, match="structure: found auto"):
        AutoStructure().cut(1)


@pytest.mark.parametrize("room", [-1, True, 2.0, "3", None])
def test_room_is_a_number_of_draft_positions(room: Any) -> None:
    for structure in (ChainStructure(3), DynamicTree(), StaticTree(PATHS), AutoStructure()):
        with pytest.raises(InputError, match="^room: "):
            structure.cut(room)


def test_a_static_tree_file_round_trips_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    StaticTree(PATHS).write(path)
    structure = Structure.parse(f"static:{path}")
    assert structure == StaticTree(PATHS)
    assert str(structure) == f"static:{path}"
    assert Structure.from_json(structure.to_json()) == structure


def test_a_static_tree_orders_its_nodes_by_depth_then_path() -> None:
    structure = StaticTree(((1, 1, 1), (2,), (1, 3), (1,), (1, 1)))
    assert structure.paths == PATHS
    assert structure.tree.parents.tolist() == [-1, 0, 0, 1, 1, 3]
    assert structure.tree.ranks.tolist() == [0, 1, 2, 1, 3, 1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "chain",
        "chain:",
        "chain:x",
        "chain:-1",
        "chain: 7",
        "chain:1_0",
        "chain:٧",
        "chain:513",
        "chain:99999999999999999999",
        "tree:total",
        "tree:total=",
        "tree:total=1",
        "tree:depth=0",
        "tree:top_k=0",
        "tree:mlp_topk=0",
        "tree:pruning=0",
        "tree:pruning=4097",
        "tree:pruning=none",
        "tree:pruning=5,pruning=5",
        "tree:total=5000",
        "tree:total=64,total=64",
        "tree:size=3",
        "tree:kind=3",
        "tree:,",
        "static:",
        "static:[",
        "static:[]",
        "static:[[1, 1]]",
        "static:[[1], [1]]",
        "static:[[0]]",
        "static:[[true]]",
        "static:[1]",
        "static:/no/such/file.json",
        "auto:3",
        "ngram",
    ],
)
def test_ill_formed_text_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Structure.parse(text)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"schema": "gumiho.static_tree/1"},
        {"schema": "gumiho.static_tree/2", "paths": [[1]]},
        {"schema": "gumiho.trace/1", "paths": [[1]]},
        {"schema": "gumiho.static_tree/1", "paths": [[1, 1]]},
        {"schema": "gumiho.static_tree/1", "paths": {"a": 1}},
    ],
)
def test_a_static_tree_file_that_cannot_be_used_is_named(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        Structure.parse(f"static:{path}")
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("content", [b"", b"[[1]]", b"{", b'{"schema": NaN}', b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_json_object_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tree.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        Structure.parse(f"static:{path}")
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("name", ["none.json", "", "file/tree.json"])
def test_a_path_that_is_no_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as caught:
        Structure.parse(f"static:{tmp_path / name}")
    assert str(caught.value).startswith(str(tmp_path / name))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "ring"},
        {"kind": "chain"},
        {"kind": "chain", "length": "7"},
        {"kind": "tree", "pruning": 0},
        {"kind": "tree", "pruning": "5"},
        {"kind": "static", "paths": [[1]], "source": 3},
    ],
)
def test_json_that_is_no_structure_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(InputError, match="structure"):
        Structure.from_json(data)
