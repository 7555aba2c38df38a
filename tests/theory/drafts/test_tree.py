from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import DraftTree, InputError
from gumiho_theory.drafts.tree import select_top

seeds = st.integers(0, 2**32 - 1)


def random_parents(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([-1, *(int(rng.integers(0, i)) for i in range(1, n))], dtype=np.int64)


def random_node_rates(tree: DraftTree, rng: np.random.Generator) -> np.ndarray:
    rates = np.ones(tree.n_nodes)
    for parent in range(tree.n_nodes):
        children = np.flatnonzero(tree.parents == parent)
        if len(children):
            rates[children] = rng.dirichlet(np.ones(len(children) + 1))[:-1]
    return rates


def enumerate_accepted(tree: DraftTree, rates: np.ndarray) -> float:
    """E[L] by listing, at every node, which child (or none) is the target's token."""
    children = [[int(c) for c in np.flatnonzero(tree.parents == node)] for node in range(tree.n_nodes)]
    total = 0.0
    for choice in itertools.product(*([*c, None] for c in children)):
        weight, node, length = 1.0, 0, 0
        for picked, options in zip(choice, children, strict=True):
            weight *= 1 - sum(rates[options]) if picked is None else rates[picked]
        while choice[node] is not None:
            node, length = choice[node], length + 1
        total += weight * length
    return total


@given(seeds, st.integers(1, 8))
def test_expected_accepted_equals_enumeration_of_all_outcomes(seed: int, n: int) -> None:
    tree = DraftTree(random_parents(seed, n))
    rates = random_node_rates(tree, np.random.default_rng(seed))
    assert np.isclose(tree.expected_accepted(rates), enumerate_accepted(tree, rates), atol=1e-12)


def test_expected_accepted_equals_monte_carlo() -> None:
    tree = DraftTree(random_parents(4, 12))
    rng = np.random.default_rng(4)
    rates = random_node_rates(tree, rng)
    n = 20_000
    lengths = np.zeros(n)
    for sample in range(n):
        node = 0
        while True:
            children = np.flatnonzero(tree.parents == node)
            u = rng.random() - np.cumsum(rates[children])
            if not (u < 0).any():
                break
            node = children[int(np.argmax(u < 0))]
            lengths[sample] += 1
    assert abs(lengths.mean() - tree.expected_accepted(rates)) < 5 * lengths.std() / np.sqrt(n)


@given(st.lists(st.floats(0, 1), max_size=7))
def test_a_chain_is_a_tree_with_the_chain_formula(p: list[float]) -> None:
    tree = DraftTree.chain(len(p))
    assert np.isclose(tree.expected_accepted([1.0, *p]), np.cumprod(p).sum())
    assert tree.depth == len(p)
    assert tree.paths() == [list(range(len(p) + 1))]


@given(seeds, st.integers(1, 30))
def test_mask_depths_and_paths_equal_a_naive_walk(seed: int, n: int) -> None:
    tree = DraftTree(random_parents(seed, n))
    for node in range(n):
        walk, at = {node}, node
        while tree.parents[at] >= 0:
            at = int(tree.parents[at])
            walk.add(at)
        assert set(np.flatnonzero(tree.ancestor_mask[node]).tolist()) == walk == set(tree.path_to(node))
        assert tree.depths[node] == len(walk) - 1
    leaves = [i for i in range(n) if i not in tree.parents.tolist()]
    assert tree.leaves.tolist() == leaves == [path[-1] for path in tree.paths()]
    assert tree.n_nodes == n


def all_trees(depth: int, width: int, total: int) -> list[list[tuple[int, ...]]]:
    """Every prefix-closed set of total - 1 rank paths."""
    paths = [p for d in range(1, depth + 1) for p in itertools.product(range(1, width + 1), repeat=d)]
    sets = itertools.combinations(paths, total - 1)
    return [list(s) for s in sets if all(len(p) == 1 or p[:-1] in s for p in s)]


@given(seeds, st.integers(1, 5))
def test_best_first_equals_exhaustive_search_of_all_small_trees(seed: int, total: int) -> None:
    rng = np.random.default_rng(seed)
    depth, width = (3, 2) if seed % 2 else (2, 3)
    # In no order of rank: measured rates need not fall with it.
    rates = rng.permuted(rng.dirichlet(np.ones(width + 1), size=depth)[:, :-1], axis=1)

    def value(tree: DraftTree) -> float:
        return tree.expected_accepted(np.array([1.0, *rates[tree.depths[1:] - 1, tree.ranks[1:] - 1]]))

    best = max(value(DraftTree.from_rank_paths(paths)) for paths in all_trees(depth, width, total))
    found = DraftTree.best_first(rates, total)
    assert found.n_nodes == total
    assert np.isclose(value(found), best, atol=1e-12)


@given(seeds)
def test_best_first_trees_grow_node_by_node(seed: int) -> None:
    rates = np.random.default_rng(seed).dirichlet(np.ones(5), size=4)[:, :-1]
    large, small = DraftTree.best_first(rates, 30), DraftTree.best_first(rates, 11)
    assert np.array_equal(large.parents[:11], small.parents)
    assert np.array_equal(large.ranks[:11], small.ranks)


def test_best_first_knows_how_many_nodes_there_are() -> None:
    assert DraftTree.best_first([[0.5, 0.0], [0.0, 0.0]], 7).n_nodes == 7
    with pytest.raises(InputError, match="at most 7 nodes"):
        DraftTree.best_first([[0.5, 0.0], [0.0, 0.0]], 8)
    assert DraftTree.best_first(np.zeros((0, 3)), 1).n_nodes == 1


def test_rank_paths_may_come_in_any_order_and_keep_their_ranks() -> None:
    tree = DraftTree.from_rank_paths([[1, 2], [3], [1]])
    assert tree.parents.tolist() == [-1, 0, 0, 1]
    assert tree.ranks.tolist() == [0, 1, 3, 2]


def test_siblings_without_ranks_are_ranked_by_their_order() -> None:
    assert DraftTree(np.array([-1, 0, 0, 1, 0])).ranks.tolist() == [0, 1, 2, 1, 3]


@pytest.mark.parametrize("paths", [[[1, 1]], [[0]], [[]], [[1], [1]], [[True]], [[1.0]]])
def test_ill_formed_rank_paths_are_refused(paths: list[list[int]]) -> None:
    with pytest.raises(InputError, match="rank path"):
        DraftTree.from_rank_paths(paths)


@pytest.mark.parametrize("parents", [[], [0], [-1, 1], [-1, 2, 0], [-1, -1], [[-1]], [-1.0, 0.0]])
def test_parents_that_are_no_tree_are_refused(parents: list[int]) -> None:
    with pytest.raises(InputError, match="parents"):
        DraftTree(np.array(parents))


@pytest.mark.parametrize("ranks", [[0, 1, 1], [0, 1], [1, 1, 2], [0, 0, 1]])
def test_ranks_that_do_not_fit_the_tree_are_refused(ranks: list[int]) -> None:
    with pytest.raises(InputError, match="ranks"):
        DraftTree(np.array([-1, 0, 0]), np.array(ranks))


@pytest.mark.parametrize("rates", [[1, 0.6, 0.5], [1, 0.6, 1.5], [1, 0.6, float("nan")], [1, 0.6]])
def test_rates_of_siblings_that_cannot_exclude_one_another_are_refused(rates: list[float]) -> None:
    with pytest.raises(InputError, match="node rates"):
        DraftTree(np.array([-1, 0, 0])).expected_accepted(rates)


@pytest.mark.parametrize("rates", [[[0.6, 0.5]], [[1.5]], [[float("nan")]], [0.5]])
def test_rank_rates_that_are_no_probabilities_are_refused(rates: list[list[float]]) -> None:
    with pytest.raises(InputError, match="rank rates"):
        DraftTree.best_first(rates, 2)


def test_expected_accepted_leaves_its_argument_alone() -> None:
    rates = np.array([0.3, 0.5, 0.5])
    DraftTree.chain(2).expected_accepted(rates)
    assert rates.tolist() == [0.3, 0.5, 0.5]


def test_tree_arrays_cannot_be_changed_after_validation() -> None:
    tree = DraftTree.chain(3)
    for array in (tree.parents, tree.ranks, tree.depths, tree.ancestor_mask, tree.leaves):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@given(seeds, st.integers(1, 25), st.integers(1, 30))
def test_select_top_keeps_the_best_nodes_with_their_parents(seed: int, n: int, total: int) -> None:
    rng = np.random.default_rng(seed)
    parents = random_parents(seed, n)
    scores = np.zeros(n)
    for node in range(1, n):
        # Coarse steps, zero among them, so that ties between and along paths are common.
        scores[node] = scores[parents[node]] - rng.integers(0, 3)
    kept, new_parents = select_top(parents, scores, total)
    assert len(kept) == min(total, n)
    assert kept[0] == 0
    assert (np.diff(kept) > 0).all()
    dropped = np.setdiff1d(np.arange(n), kept)
    for out in dropped:
        for node in kept[1:]:
            assert (scores[node], -node) > (scores[out], -out)
    tree = DraftTree(new_parents)
    for new, old in enumerate(kept[1:], start=1):
        assert kept[tree.parents[new]] == parents[old]


def test_select_top_takes_probabilities_and_masked_candidates_too() -> None:
    kept, parents = select_top([-1, 0, 0, 1], [0.0, 0.9, 0.2, 0.5], 3)
    assert (kept.tolist(), parents.tolist()) == ([0, 1, 3], [-1, 0, 1])
    kept, _ = select_top([-1, 0, 0], [0.0, -np.inf, -1.0], 2)
    assert kept.tolist() == [0, 2]


@pytest.mark.parametrize("scores", [[0, -2, -1], [0, float("nan"), -1], [0, -1]])
def test_select_top_refuses_scores_that_rise_along_a_path(scores: list[float]) -> None:
    with pytest.raises(InputError, match="scores"):
        select_top([-1, 0, 1], scores, 2)


def test_sizes_that_leave_no_root_are_refused() -> None:
    for build in (
        lambda: DraftTree.chain(-1),
        lambda: DraftTree.best_first([[0.5]], 0),
        lambda: select_top([-1], [0], 0),
    ):
        with pytest.raises(InputError):
            build()
    with pytest.raises(InputError, match="0 to 3"):
        DraftTree.chain(3).path_to(4)
