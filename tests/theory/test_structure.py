from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import AutoStructure, ChainStructure, DynamicTree, InputError, StaticTree, Structure

PATHS = ((1,), (2,), (1, 1), (1, 3), (1, 1, 1))

structures = st.one_of(
    st.builds(ChainStructure, st.integers(0, 512)),
    st.builds(DynamicTree, st.integers(2, 4096), st.integers(1, 4096), st.integers(1, 512), st.integers(1, 4096)),
    st.just(StaticTree(PATHS)),
    st.just(AutoStructure()),
)


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


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"kind": "ring"},
        {"kind": "chain"},
        {"kind": "chain", "length": "7"},
        {"kind": "static", "paths": [[1]], "source": 3},
    ],
)
def test_json_that_is_no_structure_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(InputError, match="structure"):
        Structure.from_json(data)
