"""Growing trees: the fast, batched way beside plain loops over the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.growing.dynamic import grow_dynamic, worthwhile
from gumiho_decoder.drafters.growing.static import grow_static
from gumiho_theory import (
    ChainStructure,
    CostProfile,
    DynamicTree,
    InputError,
    IsotonicMap,
    ScoreCalibration,
    StaticTree,
    Structure,
    TemperatureMap,
)

VOCAB = 11


class Table:
    """Branches whose distribution behind a node is a fixed function of its path."""

    def __init__(self, batch: int = 1, seed: int = 0) -> None:
        self.batch, self.seed = batch, seed
        self.paths = [[()] for _ in range(batch)]

    def of(self, start: int, path: tuple[int, ...]) -> np.ndarray:
        random = np.random.default_rng([self.seed, start, *path])
        return np.log(random.dirichlet(np.full(VOCAB, 0.5)) + 1e-9)

    def root(self):
        return torch.tensor(np.array([[self.of(b, ())] for b in range(self.batch)]), dtype=torch.float32)

    def deeper(self, depth, tokens, parents):
        self.paths = [
            [(*self.paths[b][p], t) for t, p in zip(tokens[b].tolist(), parents[b].tolist(), strict=True)]
            for b in range(self.batch)
        ]
        assert all(len(path) == depth for paths in self.paths for path in paths)
        rows = [[self.of(b, path) for path in self.paths[b]] for b in range(self.batch)]
        return torch.tensor(np.array(rows), dtype=torch.float32), torch.arange(tokens.shape[1]).expand_as(tokens)


def paths_of(grown, b=0):
    """Nodes as token paths, in order."""
    parents, tokens = grown.parents[b].tolist(), grown.tokens[b].tolist()
    paths = [()]
    for node in range(1, len(parents)):
        paths.append((*paths[parents[node]], tokens[node]))
    return paths


def eagle2(table, start, structure, serial, score=lambda depth, log_q: log_q):
    """The definition, one candidate after another: {path: score} of all candidates, then the best."""
    candidates = {}
    level = {(): 0.0}
    for depth in range(1, structure.depth + 1):
        width = structure.top_k if depth <= serial else structure.mlp_topk
        opened = {}
        for path, above in level.items():
            log_q = score(depth, table.of(start, path))
            for token in np.argsort(-log_q, kind="stable")[:width]:
                opened[(*path, int(token))] = above + min(0.0, float(log_q[token]))
        best = sorted(opened, key=opened.get, reverse=True)
        if depth <= serial:
            candidates |= opened
            level = {path: opened[path] for path in best[: structure.top_k]}
        else:
            keep = structure.mlp_topk if structure.pruning is None else structure.pruning
            level = {path: opened[path] for path in best[:keep]}
            candidates |= level
    return candidates


@pytest.mark.parametrize("serial", [1, 2, 5])
@pytest.mark.parametrize(
    "structure",
    [
        DynamicTree(total=2, top_k=1, depth=1, mlp_topk=1),
        DynamicTree(total=16, top_k=3, depth=4, mlp_topk=5),
        DynamicTree(total=40, top_k=4, depth=5, mlp_topk=3, pruning=7),
        DynamicTree(total=300, top_k=12, depth=3, mlp_topk=20),
    ],
    ids=str,
)
def test_a_dynamic_tree_is_the_best_of_all_candidates_as_eagle2_defines_them(structure, serial):
    for seed in range(8):
        batch = 3
        grown = grow_dynamic(Table(batch, seed), structure, torch.tensor([7, 8, 9]), serial, DraftOptions())
        for b in range(batch):
            expected = eagle2(Table(batch, seed), b, structure, serial)
            best = sorted(expected, key=expected.get, reverse=True)[: structure.total - 1]
            found = paths_of(grown, b)
            assert set(found[1:]) == set(best)
            assert grown.depths[b].tolist() == [len(path) for path in found]
            for node, path in enumerate(found):
                above = {i for i, other in enumerate(found) if path[: len(other)] == other}
                assert set(grown.ancestors[b, node].nonzero()[:, 0].tolist()) == above
                if node:
                    log_q = Table(batch, seed).of(b, path[:-1])
                    assert grown.ranks[b, node] == 1 + int((log_q > log_q[path[-1]]).sum())
                if grown.row[b, node] >= 0:
                    row = grown.log_q[b, grown.row[b, node]]
                    np.testing.assert_allclose(row, Table(batch, seed).of(b, path), atol=1e-5)
                else:  # only where no candidate of the tree continues
                    assert node not in grown.parents[b].tolist()


def test_equal_scores_never_cut_a_parent_before_its_child():
    """A certain token's child has its parent's score: the official code's re-ranking could keep the child alone."""

    class Certain(Table):
        def of(self, start, path):
            log_q = np.full(VOCAB, -np.inf)
            log_q[len(path)] = 0.0
            return log_q

    for total in range(2, 7):
        grown = grow_dynamic(
            Certain(), DynamicTree(total=total, top_k=3, depth=5), torch.tensor([1]), 5, DraftOptions()
        )
        assert paths_of(grown) == [tuple(range(depth)) for depth in range(total)]


CALIBRATION = ScoreCalibration(
    "d",
    "0" * 64,
    (TemperatureMap(2.5), IsotonicMap((0.0, 0.2, 0.6, 1.0), (0.05, 0.5, 0.5, 0.97)), TemperatureMap(0.4)),
)


def calibrated(depth, log_q):
    at = CALIBRATION.at(depth)
    if isinstance(at, TemperatureMap):
        scaled = at.beta * log_q
        return scaled - np.logaddexp.reduce(scaled)
    # A flat piece makes ties: the order among them is the draft's own.
    return np.log(np.interp(np.exp(log_q), at.draft, at.acceptance)) + 1e-12 * log_q


def test_calibrated_scores_rank_the_nodes_of_a_dynamic_tree():
    structure = DynamicTree(total=14, top_k=4, depth=4, mlp_topk=4)
    changed = 0
    for seed in range(12):
        options = DraftOptions(calibration=CALIBRATION)
        grown = grow_dynamic(Table(1, seed), structure, torch.tensor([0]), 4, options)
        expected = eagle2(Table(1, seed), 0, structure, 4, calibrated)
        ranked = sorted(expected.values(), reverse=True)
        for path in paths_of(grown)[1:]:
            assert expected[path] >= ranked[12] - 1e-5
        raw = grow_dynamic(Table(1, seed), structure, torch.tensor([0]), 4, DraftOptions())
        changed += set(paths_of(raw)) != set(paths_of(grown))
        # What is recorded are the draft's own probabilities, calibrated or not.
        assert torch.allclose(grown.log_q[0, 0], torch.tensor(Table(1, seed).of(0, ()), dtype=torch.float32))
    assert changed > 6


def profile(verify):
    return CostProfile(
        target="t",
        drafter="d",
        device="cpu",
        dtype="float32",
        baseline_seconds=1.0,
        verify_nodes=tuple(range(1, len(verify) + 1)),
        verify_seconds=tuple(verify),
        draft_serial_seconds=0.1,
        draft_parallel_seconds=0.0,
        serial_steps=4,
        other_seconds=0.05,
    )


@given(
    paths=st.lists(st.floats(0, 1), min_size=1, max_size=30),
    verify=st.lists(st.floats(0.1, 3), min_size=1, max_size=40),
)
@settings(max_examples=200, deadline=None)
def test_the_budget_maximises_expected_tokens_a_second(paths, verify):
    paths = np.sort(paths)[::-1]
    costs = profile(sorted(verify))
    nodes = worthwhile(paths, 4, costs)

    def rate(n):
        return (1 + math.fsum(paths[: n - 1])) / costs.cycle_seconds(4, n)

    allowed = [n for n in range(1, len(paths) + 2) if n <= len(verify)]
    assert rate(nodes) == pytest.approx(max(rate(n) for n in allowed), rel=1e-9)


def test_a_dear_verification_makes_small_trees_and_a_free_one_fills_them():
    structure = DynamicTree(total=40, top_k=6, depth=4)
    sizes = [
        grow_dynamic(
            Table(), structure, torch.tensor([0]), 4, DraftOptions(budget=profile(1 + slope * np.arange(64)))
        ).tokens.shape[1]
        for slope in (0.0, 0.02, 0.2, 50.0)
    ]
    assert sizes[0] == 40
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1


STATIC = "static:[[1],[3],[4],[1,1],[1,2],[3,2],[1,2,1],[1,2,5],[3,2,2],[1,2,5,1]]"


@pytest.mark.parametrize("text", [STATIC, "chain:4", "static:[[2]]", "static:[[1],[1,1],[1,1,1],[1,1,2]]"])
def test_a_static_tree_holds_the_candidates_of_its_ranks(text):
    structure = Structure.parse(text)
    grown = grow_static(Table(3, 5), structure, torch.tensor([7, 8, 9]), DraftOptions())
    for b in range(3):
        found = paths_of(grown, b)
        assert len(found) == 1 + len(structure.paths)
        for node, ranks in enumerate(structure.paths, start=1):
            path = found[node]
            for depth, rank in enumerate(ranks):
                log_q = Table(3, 5).of(b, path[:depth])
                assert np.argsort(-log_q)[rank - 1] == path[depth]
            assert grown.ranks[b, node] == ranks[-1]
            assert grown.depths[b, node] == len(ranks)
        for node, path in enumerate(found):
            if grown.row[b, node] >= 0:
                np.testing.assert_allclose(grown.log_q[b, grown.row[b, node]], Table(3, 5).of(b, path), atol=1e-5)
            else:
                assert node not in grown.parents[b].tolist()


def test_sampled_siblings_are_drawn_without_replacement_from_the_tempered_distributions():
    structure = StaticTree([(1,), (2,), (3,), (2, 1), (2, 2), (2, 2, 1)])
    random = torch.Generator().manual_seed(0)
    options = DraftOptions(random=random, temperature=0.7)
    first = np.zeros((VOCAB, VOCAB))
    draws = 6000
    for _ in range(draws):
        grown = grow_static(Table(), structure, torch.tensor([0]), options)
        tokens = grown.tokens[0].tolist()
        assert len(set(tokens[1:4])) == 3
        assert tokens[4] != tokens[5]
        assert grown.ranks[0].tolist() == [0, 1, 2, 3, 1, 2, 1]
        first[tokens[1], tokens[2]] += 1
    log_q = Table().of(0, ()) / 0.7
    q = np.exp(log_q - np.logaddexp.reduce(log_q))
    np.testing.assert_allclose(grown.log_q[0, 0].exp(), q, atol=1e-6)
    expected = draws * q[:, None] * q[None, :] / (1 - q[:, None])
    np.fill_diagonal(expected, 0.0)
    some = expected > 5
    chi = ((first - expected)[some] ** 2 / expected[some]).sum()
    assert chi < some.sum() + 6 * math.sqrt(2 * some.sum())


def test_the_same_generator_gives_the_same_draws():
    structure = StaticTree([(1,), (2,), (1, 1)])
    made = [
        grow_static(
            Table(), structure, torch.tensor([0]), DraftOptions(random=torch.Generator().manual_seed(seed))
        ).tokens.tolist()
        for seed in (3, 3, 4, 5, 6)
    ]
    assert made[0] == made[1]
    assert len({str(m) for m in made}) > 1


def test_a_rank_beyond_the_vocabulary_is_refused():
    with pytest.raises(InputError, match="rank 12"):
        grow_static(Table(), StaticTree([(12,)]), torch.tensor([0]), DraftOptions())
    assert grow_static(Table(), ChainStructure(0), torch.tensor([0]), DraftOptions()).tokens.shape == (1, 1)
