"""Worth of nodes, ranks and depths of a draft tree, and where earlier is worth more."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gumiho_theory import DraftTree, InputError, check_theorem, expected_accepted, sensitivity
from gumiho_theory.extensions.trees import (
    CROWDED,
    LOPSIDED,
    TreeExample,
    check_tree,
    depth_weights,
    missing_deletions,
    move_between_depths,
)
from gumiho_theory.extensions.worth import (
    depth_survival,
    depth_worth,
    node_rates,
    node_worth,
    rank_worth,
    sample_accepted,
)

seeds = st.integers(0, 2**32 - 1)


def random_tree(rng: np.random.Generator, n: int) -> DraftTree:
    return DraftTree(np.array([-1, *(int(rng.integers(0, i)) for i in range(1, n))], dtype=np.int64))


def shares_of(rng: np.random.Generator, parts: int) -> list[Fraction]:
    """Exact numbers >= 0, zeros among them, that sum to at most 1."""
    weights = [int(w) for w in rng.integers(0, 5, parts + 1)]
    return [Fraction(w, max(1, sum(weights))) for w in weights[:-1]]


def random_rates(rng: np.random.Generator, tree: DraftTree) -> list[Fraction]:
    rates = [Fraction(1)] * tree.n_nodes
    for parent in range(tree.n_nodes):
        children = np.flatnonzero(tree.parents == parent)
        for child, rate in zip(children, shares_of(rng, len(children)), strict=True):
            rates[child] = rate
    return rates


def enumerated(tree: DraftTree, rates: Any) -> list[Any]:
    """P(L = l), l = 0..D, by listing at every node which child (or none) is the target's token."""
    children = [[int(c) for c in np.flatnonzero(tree.parents == node)] for node in range(tree.n_nodes)]
    pmf: list[Any] = [Fraction(0)] * (tree.depth + 1)
    for choice in itertools.product(*([*c, None] for c in children)):
        weight, node = Fraction(1), 0
        for picked, options in zip(choice, children, strict=True):
            weight *= 1 - sum(rates[o] for o in options) if picked is None else rates[picked]
        while choice[node] is not None:
            node = choice[node]
        pmf[tree.depths[node]] += weight
    return pmf


def mean(tree: DraftTree, rates: Any) -> Fraction:
    return sum(depth_survival(tree, rates), Fraction())


@given(seeds, st.integers(2, 8))
def test_survival_and_worth_equal_enumeration_exactly(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    rates = random_rates(rng, tree)
    pmf = enumerated(tree, rates)
    assert depth_survival(tree, rates).tolist() == [sum(pmf[d:]) for d in range(1, tree.depth + 1)]
    worth = node_worth(tree, rates)
    assert worth[0] == 0
    for node in range(1, n):
        # E[L] is linear in each rate; formally also where a rate of 1 leaves siblings no room.
        ends = [
            sum(k * p for k, p in enumerate(enumerated(tree, [*rates[:node], end, *rates[node + 1 :]])))
            for end in (1, 0)
        ]
        assert worth[node] == ends[0] - ends[1]


def test_survival_equals_sampled_cycles() -> None:
    rng = np.random.default_rng(3)
    for n in (2, 6, 14):
        tree = random_tree(rng, n)
        rates = np.array(random_rates(rng, tree), dtype=np.float64)
        lengths = sample_accepted(tree, rates, 100_000, rng)
        for depth, survival in enumerate(depth_survival(tree, rates), start=1):
            error = np.sqrt(survival * (1 - survival) / 100_000)
            assert abs((lengths >= depth).mean() - survival) <= 5 * error + 1e-12
        assert mean(tree, rates) == pytest.approx(tree.expected_accepted(rates), abs=1e-12)


def test_worth_of_a_node_equals_the_difference_of_two_sampled_trees() -> None:
    tree = DraftTree(np.array([-1, 0, 0, 1, 1, 3]))
    rates = np.array([1, 0.5, 0.2, 0.4, 0.3, 0.7])
    step, n = 0.2, 400_000
    rng = np.random.default_rng(8)
    low, high = (sample_accepted(tree, rates + np.eye(6)[3] * s, n, rng) for s in (0.0, step))
    error = np.hypot(low.std(), high.std()) / np.sqrt(n) / step
    assert abs((high.mean() - low.mean()) / step - node_worth(tree, rates)[3]) < 5 * error


@given(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=7))
def test_on_a_chain_node_and_rank_worth_are_the_sensitivities(p: list[float]) -> None:
    tree = DraftTree.chain(len(p))
    assert np.allclose(node_worth(tree, [1.0, *p])[1:], sensitivity(p), atol=1e-12)
    assert np.allclose(rank_worth(tree, [1.0, *p]), sensitivity(p), atol=1e-12)
    assert np.allclose(depth_worth(tree, [1.0, *p]), np.array(p) * sensitivity(p), atol=1e-12)


@given(seeds, st.integers(2, 9))
def test_depth_worth_is_the_slope_of_scaling_a_depth_and_never_rises(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    rates = random_rates(rng, tree)
    worth = depth_worth(tree, rates).tolist()
    assert worth == sorted(worth, reverse=True)
    for depth in range(1, tree.depth + 1):
        # Linear in the factor: one half of the rates gone is one half of the worth gone.
        halved = [r / 2 if d == depth else r for r, d in zip(rates, tree.depths, strict=True)]
        assert mean(tree, rates) - mean(tree, halved) == worth[depth - 1] / 2


@given(seeds, st.integers(3, 10))
def test_moving_accuracy_to_earlier_heads_never_loses_in_any_tree(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    assume(tree.depth >= 2)
    shares = random_rates(rng, tree)
    theta = sorted((Fraction(int(k), 12) for k in rng.integers(0, 13, tree.depth)), reverse=True)
    early = int(rng.integers(1, tree.depth))
    if rng.random() < 0.5:
        theta[:early] = rng.permutation(np.array(theta[:early], dtype=object)).tolist()
    improved = list(theta)
    for _ in range(6):
        source, target = int(rng.integers(early, tree.depth)), int(rng.integers(0, early))
        amount = min(improved[source], 1 - improved[target]) * Fraction(int(rng.integers(0, 5)), 4)
        improved[source] -= amount
        improved[target] += amount
    done = check_tree(tree, shares, theta, improved, early)
    assert done.hypothesis is not None
    assert done.gain >= 0
    both = [[s * ([Fraction(1), *t])[d] for s, d in zip(shares, tree.depths, strict=True)] for t in (theta, improved)]
    assert [done.expected_original, done.expected_improved] == [mean(tree, rates) for rates in both]
    weights = depth_weights(tree, shares).tolist()
    assert [Fraction(1), *weights] == sorted([Fraction(1), *weights], reverse=True)


def test_heads_of_a_chain_obey_the_chain_s_theorem_and_its_boundary() -> None:
    original, improved = "0.81,0.16,0.99", "0.97,0,0.99"
    chain = check_tree(DraftTree.chain(3), [1, 1, 1, 1], original, improved, 1)
    assert chain.hypothesis is None
    assert chain.gain == check_theorem(original, improved, 1).gain_exact < 0
    with pytest.raises(InputError, match="found 3 accuracies, wanted 2"):
        check_tree(DraftTree.chain(2), [1, 1, 1], original, improved, 1)


def test_float_shares_that_sum_to_a_hair_above_one_are_taken() -> None:
    tree = DraftTree(np.array([-1, 0, 0, 0, 1]))
    third = 1 / 3 + 1e-12
    done = check_tree(tree, [1.0, third, third, third, 1.0], [0.5, 0.5], [0.75, 0.25], 1)
    assert done.gain >= 0
    assert float(done.expected_original) == pytest.approx(0.5 + 0.25 / 3)


def falling_table(rng: np.random.Generator, depth: int, width: int) -> list[list[Fraction]]:
    """Rates that do not rise with depth at any rank, but stand in any order of rank."""
    table = [shares_of(rng, width)]
    for _ in range(depth - 1):
        table.append([r * Fraction(int(rng.integers(0, 4)), 3) for r in table[-1]])
    return table


@given(seeds, st.integers(2, 4), st.integers(1, 3), st.integers(3, 25))
def test_moving_a_rank_earlier_never_loses_in_a_best_first_tree(seed: int, depth: int, width: int, total: int) -> None:
    rng = np.random.default_rng(seed)
    table = falling_table(rng, depth, width)
    size = min(total, sum(width**d for d in range(depth + 1)))
    tree = DraftTree.best_first(np.array(table, dtype=np.float64), size)
    assert missing_deletions(tree) == ()
    rates = node_rates(tree, table)
    rank = int(rng.integers(1, width + 1))
    worth = rank_worth(tree, rates, rank).tolist()
    assert worth == sorted(worth, reverse=True)
    for a, b in itertools.combinations(range(1, tree.depth + 1), 2):
        room = min(table[b - 1][rank - 1], 1 - sum(table[a - 1]))
        for amount in (room, room / 3):
            assert mean(tree, move_between_depths(tree, table, b, a, amount, rank)) >= mean(tree, rates)


def every_closed_tree(depth: int, width: int) -> list[DraftTree]:
    paths = [p for d in range(1, depth + 1) for p in itertools.product(range(1, width + 1), repeat=d)]
    trees = []
    for size in range(1, len(paths) + 1):
        for some in itertools.combinations(paths, size):
            if all(len(p) == 1 or p[:-1] in some for p in some):
                tree = DraftTree.from_rank_paths(some)
                if not missing_deletions(tree):
                    trees.append(tree)
    return trees


def test_moving_a_rank_earlier_never_loses_in_any_small_closed_tree() -> None:
    trees = every_closed_tree(3, 2)
    assert len(trees) > 30
    rng = np.random.default_rng(0)
    for tree in trees:
        for _ in range(2):
            table = falling_table(rng, 3, 2)
            rates = node_rates(tree, table)
            for a, b in itertools.combinations(range(1, tree.depth + 1), 2):
                room = min(table[b - 1][0], 1 - sum(table[a - 1]))
                assert mean(tree, move_between_depths(tree, table, b, a, room)) >= mean(tree, rates)


@pytest.mark.parametrize("example", [LOPSIDED, CROWDED], ids=["lopsided", "crowded"])
def test_beyond_the_theorems_moving_accuracy_earlier_can_lose(example: TreeExample) -> None:
    before, after = (
        sum(k * p for k, p in enumerate(enumerated(example.tree, rates)))
        for rates in (example.original, example.improved)
    )
    assert example.gain == after - before < 0
    assert sum(example.original) == sum(example.improved)
    raised = [d for d, o, n in zip(example.tree.depths, example.original, example.improved, strict=True) if n > o]
    lowered = [d for d, o, n in zip(example.tree.depths, example.original, example.improved, strict=True) if n < o]
    assert max(raised) < min(lowered)


def test_the_lopsided_tree_has_the_same_rates_at_every_depth_and_is_not_closed() -> None:
    tree = LOPSIDED.tree
    for rank in (1, 2):
        assert len({r for r, k in zip(LOPSIDED.original, tree.ranks, strict=True) if k == rank}) == 1
    assert (1, 1) in missing_deletions(tree)
    worth = rank_worth(tree, list(LOPSIDED.original))
    assert worth[0] < worth[1]


def test_the_crowded_tree_descends_along_every_path_and_still_its_child_is_worth_more() -> None:
    rates, tree = CROWDED.original, CROWDED.tree
    assert all(rates[node] <= rates[tree.parents[node]] for node in range(1, tree.n_nodes))
    worth = node_worth(tree, list(rates))
    assert worth[1] < worth[2]
    # The exact criterion of a node and its parent: (r_a - r_b) W_b <= 1 + sum of r_c W_c over b's siblings.
    assert (rates[1] - rates[2]) * (1 + sum(rates[3:])) > 1


def test_chains_and_complete_trees_are_closed_under_deletion() -> None:
    assert missing_deletions(DraftTree.chain(5)) == ()
    assert missing_deletions(DraftTree.best_first(np.full((3, 2), 0.5), 15)) == ()
    assert missing_deletions(DraftTree.from_rank_paths([[2], [2, 1]])) == ((1,),)
    # Every candidate of a path counts, not only its first.
    assert missing_deletions(DraftTree.from_rank_paths([[1], [2], [1, 2], [2, 1], [1, 2, 1]])) == ((1, 1),)


def test_float_and_exact_rates_agree() -> None:
    tree = DraftTree.best_first([[0.5, 0.25], [0.5, 0.25]], 6)
    exact = node_rates(tree, [[Fraction(1, 2), Fraction(1, 4)]] * 2)
    rough = node_rates(tree, [[0.5, 0.25]] * 2)
    assert rough.dtype == np.float64
    for function in (depth_survival, node_worth, depth_worth, rank_worth):
        assert [float(v) for v in function(tree, exact)] == function(tree, rough).tolist()
    assert mean(tree, rough) == pytest.approx(expected_accepted([0.75, 0.75]) - 0.25**2, abs=1e-12)


@pytest.mark.parametrize(
    "rates, message",
    [
        ([1, 0.5], r"node rates: found shape \(2,\), wanted 3"),
        ([1, 0.5, 1.5], "node rates, node 2: found 1.5"),
        ([1, float("nan"), 0.5], "node rates, node 1: found nan"),
        ([1, 0.6, 0.5], "children of node 0: found a sum of 1.1"),
        ([1, Fraction(1, 2), Fraction(500001, 10**6)], "children of node 0"),
        (["a", "b", "c"], "node rates: "),
    ],
)
def test_what_are_no_node_rates_is_refused(rates: Any, message: str) -> None:
    tree = DraftTree(np.array([-1, 0, 0]))
    for function in (depth_survival, node_worth, rank_worth, depth_worth, depth_weights):
        with pytest.raises(InputError, match=message):
            function(tree, rates)


def test_ranks_depths_and_counts_out_of_range_are_refused() -> None:
    tree = DraftTree.chain(2)
    table = [[0.5], [0.4]]
    for call, message in (
        (lambda: node_rates(tree, [[0.5]]), "at least 2 depths x 1 ranks"),
        (lambda: rank_worth(tree, [1, 0.5, 0.4], 0), "rank: found 0"),
        (lambda: move_between_depths(tree, table, 3, 1, 0.1), "source, destination: found 3, 1"),
        (lambda: move_between_depths(tree, table, 2, 1, 0.1, 2), "rank: found 2"),
        (lambda: move_between_depths(tree, table, 2, 1, 0.6), "node rates, node 1: found 1.1"),
        (lambda: sample_accepted(tree, [1, 0.5, 0.4], -1, np.random.default_rng(0)), "cycles: found -1"),
    ):
        with pytest.raises(InputError, match=message):
            call()
