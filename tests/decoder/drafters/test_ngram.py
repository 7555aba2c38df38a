"""Prompt lookup beside plain Python that looks for one path at a time."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers import LlamaConfig, LlamaForCausalLM

from fakes import VOCAB, FakeTokenizer, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Draft, DraftOptions
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.target import Target
from gumiho_theory import (
    ChainStructure,
    CostProfile,
    DynamicTree,
    InputError,
    IsotonicMap,
    ScoreCalibration,
    StaticTree,
    TemperatureMap,
)

TREE = StaticTree(((1,), (2,), (3,), (1, 1), (1, 2), (2, 1), (1, 1, 1), (1, 2, 2), (1, 1, 1, 1)))
STRUCTURES = [ChainStructure(5), TREE, DynamicTree(total=12, top_k=3, depth=4)]
texts = st.lists(st.integers(0, 2), min_size=2, max_size=30)
sizes = st.tuples(st.integers(1, 3), st.integers(0, 2)).map(lambda s: (s[0] + s[1], s[0]))
quick = settings(max_examples=60, deadline=None)


@pytest.fixture(scope="module")
def target():
    return random_target()


def started(target, text: list[int], longest: int = 3, shortest: int = 1) -> NgramDrafter:
    drafter = NgramDrafter(target, longest, shortest)
    drafter.start(torch.tensor(text), torch.zeros(len(text) - 1, target.hidden_size))
    return drafter


def plainly(text: list[int], path: list[int], longest: int, shortest: int) -> dict[int, float]:
    """The slow twin: tokens and probabilities behind a drafted path; nothing where there is no distribution."""
    for m in range(longest, shortest - 1, -1):
        places = [p for p in range(m, len(text)) if text[p - m : p] == text[-m:]]
        if places:
            break
    else:
        return {}
    places = [p + len(path) for p in places if text[p : p + len(path)] == path and p + len(path) < len(text)]
    weights: dict[int, float] = {}
    for p in places:
        last = max(q for q in places if text[q] == text[p])
        weights[text[p]] = sum(text[q] == text[p] for q in places) + last / len(text)
    return {token: weight / sum(weights.values()) for token, weight in weights.items()}


def ranked(law: dict[int, float]) -> list[int]:
    return sorted(law, key=law.get, reverse=True)


def row_of(law: dict[int, float]) -> torch.Tensor:
    row = torch.full((VOCAB,), -torch.inf)
    for token, probability in law.items():
        row[token] = math.log(probability)
    return row


def nodes_of(draft: Draft) -> dict[tuple[int, ...], int]:
    """Every node by its path, after the draft as a whole was found sound."""
    tree = draft.tree
    paths = [tuple(int(draft.tokens[i]) for i in tree.path_to(node)[1:]) for node in range(draft.n_nodes)]
    assert len(set(paths)) == draft.n_nodes
    assert draft.depths.tolist() == [len(path) for path in paths]
    assert draft.depth == max(map(len, paths))
    assert torch.equal(draft.ancestors, torch.tensor(tree.ancestor_mask))
    assert torch.equal(draft.host_parents, draft.parents)
    assert draft.log_q.shape == (int(draft.row.max()) + 1, VOCAB)
    torch.testing.assert_close(draft.log_q.exp().sum(1), torch.ones(len(draft.log_q)))
    return {path: node for node, path in enumerate(paths)}


def check_rows(draft: Draft, nodes: dict, laws: dict) -> None:
    """A node has its own distribution, or none: where there is none to have, or its children were not asked for."""
    for path, node in nodes.items():
        if draft.row[node] >= 0:
            torch.testing.assert_close(draft.log_q[draft.row[node]], row_of(laws[path]), atol=1e-5, rtol=1e-5)
        for token in laws[path]:
            assert draft.row[node] >= 0 or (*path, token) not in nodes


class Laws(dict):
    """The slow twin's distribution behind any path."""

    def __init__(self, text, size) -> None:
        self.text, self.size = text, size

    def __missing__(self, path):
        self[path] = plainly(self.text, list(path), *self.size)
        return self[path]


def static_twin(laws: Laws, structure) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Rank path -> token path of the nodes that have support."""
    kept = {(): ()}
    for path in structure.paths:
        if path[:-1] in kept and path[-1] <= len(laws[kept[path[:-1]]]):
            kept[path] = (*kept[path[:-1]], ranked(laws[kept[path[:-1]]])[path[-1] - 1])
    return kept


def dynamic_twin(laws: Laws, structure: DynamicTree) -> list[float]:
    """Log-probabilities of the nodes kept, best first."""
    pool, on = [], [(0.0, ())]
    for _ in range(structure.depth):
        opened = []
        for score, path in on:
            for token in ranked(laws[path])[: structure.top_k]:
                opened.append((score + math.log(laws[path][token]), (*path, token)))
        pool += opened
        on = sorted(opened, reverse=True)[: structure.top_k]
    return sorted((score for score, _ in pool), reverse=True)[: structure.total - 1]


@given(texts, sizes, st.sampled_from([ChainStructure(0), ChainStructure(5), TREE]))
@quick
def test_chains_and_static_trees_hold_the_candidates_that_were_found_and_no_others(target, text, size, structure):
    laws, draft = Laws(text, size), started(target, text, *size).propose(structure)
    nodes = nodes_of(draft)
    assert set(nodes) == set(static_twin(laws, structure).values())
    for rank_path, path in static_twin(laws, structure).items():
        assert int(draft.ranks[nodes[path]]) == (rank_path[-1] if rank_path else 0)
    check_rows(draft, nodes, laws)


@given(texts, sizes, st.integers(2, 12), st.integers(1, 4), st.integers(1, 4))
@quick
def test_dynamic_trees_hold_the_most_probable_candidates_and_no_others(target, text, size, total, top_k, depth):
    structure = DynamicTree(total=total, top_k=top_k, depth=depth)
    laws, draft = Laws(text, size), started(target, text, *size).propose(structure)
    nodes = nodes_of(draft)
    scores = [
        sum(math.log(laws[path[:i]][token]) for i, token in enumerate(path)) for path in sorted(nodes, key=len)[1:]
    ]
    assert sorted(scores, reverse=True) == pytest.approx(dynamic_twin(laws, structure), abs=1e-5)
    check_rows(draft, nodes, laws)


@given(texts, sizes, st.data())
@quick
def test_many_roots_at_once_are_each_prefix_alone(target, text, size, data):
    """A root's branches know nothing of what comes after it."""
    roots = data.draw(st.lists(st.integers(1, len(text) - 1), min_size=1, max_size=4))
    branches = started(target, text, *size).branches(3, torch.tensor(roots))
    levels = [(branches.root(), torch.zeros(len(roots), 1, dtype=torch.int64))]
    paths = [[[()] for _ in roots]]
    for depth in (1, 2):
        width = data.draw(st.integers(1, 3))
        cells = st.lists(
            st.lists(st.integers(0, 2), min_size=width, max_size=width), min_size=len(roots), max_size=len(roots)
        )
        tokens = data.draw(cells)
        parents = [[p % len(above) for p in row] for row, above in zip(data.draw(cells), paths[-1], strict=True)]
        paths.append(
            [
                [(*above[p], t) for p, t in zip(*pair, strict=True)]
                for above, *pair in zip(paths[-1], parents, tokens, strict=True)
            ]
        )
        levels.append(branches.deeper(depth, torch.tensor(tokens), torch.tensor(parents)))
    for (log_q, row), level in zip(levels, paths, strict=True):
        for b, root in enumerate(roots):
            for node, path in enumerate(level[b]):
                wanted = row_of(plainly(text[: root + 1], list(path), *size))
                torch.testing.assert_close(log_q[b, row[b, node]], wanted, atol=1e-5, rtol=1e-5)


@given(texts, st.sampled_from(STRUCTURES))
@quick
def test_trees_grown_from_many_roots_are_each_prefixs_draft_and_nothing_else(target, text, structure):
    roots = torch.arange(1, len(text))
    drafter = started(target, text)
    grown = drafter.grow(structure, DraftOptions(), drafter.branches(structure.depth, roots), torch.tensor(text)[roots])
    for b, root in enumerate(roots.tolist()):
        draft = started(target, text[: root + 1]).propose(structure)
        kept = grown.tokens[b] >= 0
        assert grown.tokens[b][kept].tolist() == draft.tokens.tolist()
        assert grown.depths[b][kept].tolist() == draft.depths.tolist()
        assert -1 not in grown.tokens[b].tolist()  # which may stand for tokens that are not known
        for node in (~kept).nonzero()[:, 0].tolist():
            below = grown.ancestors[b][:, node]
            assert not (below & kept).any()


def test_the_longest_match_counts_and_where_there_is_none_a_shorter_one(target):
    text = [1, 2, 3, 9, 7, 3, 8, 5, 3, 8, 1, 2, 3]
    assert started(target, text, 3).propose(ChainStructure(2)).tokens.tolist() == [3, 9, 7]
    assert started(target, text, 1).propose(ChainStructure(2)).tokens.tolist() == [3, 8, 1]
    text[1] = 6  # now only the last token stood before
    assert started(target, text, 3).propose(ChainStructure(2)).tokens.tolist() == [3, 8, 1]
    assert started(target, text, 3, 2).propose(ChainStructure(2)).n_nodes == 1


def test_of_equally_frequent_tokens_the_most_recent_comes_first_and_more_frequent_ones_before(target):
    assert started(target, [1, 2, 1, 3, 1]).propose(ChainStructure(1)).tokens.tolist() == [1, 3]
    assert started(target, [1, 2, 1, 2, 1, 3, 1]).propose(ChainStructure(1)).tokens.tolist() == [1, 2]
    assert started(target, [1, 2, 1, 3, 1, 3, 1, 2, 1], 1).propose(ChainStructure(1)).tokens.tolist() == [1, 2]


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_a_text_that_repeats_nothing_leaves_the_root_alone(target, structure):
    draft = started(target, [5, 4, 3, 2, 1]).propose(structure)
    assert (draft.tokens.tolist(), draft.parents.tolist(), draft.row.tolist()) == ([1], [-1], [-1])
    assert (draft.n_nodes, draft.depth, draft.log_q.shape) == (1, 0, (0, VOCAB))


@given(texts, st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), max_size=4))
@quick
def test_advancing_equals_starting_anew(target, text, steps):
    drafter = started(target, text)
    for step in steps:
        drafter.propose(TREE)
        drafter.advance(torch.tensor(step), torch.zeros(len(step), target.hidden_size))
        text = text + step
    one, other = drafter.propose(TREE), started(target, text).propose(TREE)
    for field in ("tokens", "parents", "ranks", "row", "log_q"):
        assert torch.equal(getattr(one, field), getattr(other, field))


# ---- drawn candidates


@given(texts, st.sampled_from([ChainStructure(4), TREE]), st.sampled_from([0.3, 1.0, 3.0]), st.integers(0, 99))
@quick
def test_draws_are_of_supported_tokens_and_recorded_with_the_law_they_came_from(target, text, structure, heat, seed):
    options = DraftOptions(torch.Generator().manual_seed(seed), heat)
    draft = started(target, text).propose(structure, options)
    nodes, laws = nodes_of(draft), Laws(text, (3, 1))
    assert draft.sampled
    tree = structure.tree if isinstance(structure, StaticTree) else None
    for path, node in nodes.items():
        children = [p for p in nodes if p[:-1] == path and p]
        if not path and tree is not None:  # as many as are asked for, or as there are
            assert len(children) == min(3, len(laws[path]))
        ranks = [int(draft.ranks[nodes[child]]) for child in children]
        assert ranks == list(range(1, len(children) + 1))
        if draft.row[node] >= 0:
            scaled = {token: q ** (1 / heat) for token, q in laws[path].items()}
            law = {token: q / sum(scaled.values()) for token, q in scaled.items()}
            torch.testing.assert_close(draft.log_q[draft.row[node]], row_of(law), atol=1e-4, rtol=1e-4)


def test_siblings_are_drawn_one_after_another_without_replacement(target):
    """Chi-square over pairs, and over the single draws where only one token was ever seen."""
    text, pairs = [1, 2, 1, 3, 1, 3, 1, 4, 1], StaticTree(((1,), (2,)))
    law = plainly(text, [], 3, 1)
    drafter, random = started(target, text, 3), torch.Generator().manual_seed(0)
    drawn = Counter(tuple(drafter.propose(pairs, DraftOptions(random)).tokens[1:].tolist()) for _ in range(3000))
    wanted = {(a, b): law[a] * law[b] / (1 - law[a]) for a, b in permutations(law, 2)}
    assert chisquare([drawn[pair] for pair in wanted], [3000 * w for w in wanted.values()]).pvalue > 1e-4
    assert started(target, [1, 2, 1]).propose(pairs, DraftOptions(random)).tokens.tolist() == [1, 2]


# ---- decoding


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_what_is_decoded_is_the_targets_text_and_repetitions_are_foreseen(target, structure):
    prompt, cycles = [5, 17, 3, 44] * 4, []
    wanted = plain(target, prompt, GenerationConfig(60))
    found = generate(target, NgramDrafter(target), prompt, GenerationConfig(60, structure), cycles.append)
    assert found.token_ids == wanted.token_ids
    assert all(cycle.draft.depth <= structure.depth for cycle in cycles)


@pytest.mark.parametrize("candidates", ["top", "sampled"])
def test_a_sampled_run_follows_the_targets_law(candidates):
    """Chi-square over the first two tokens; the second is drafted, from fewer tokens than there are."""
    torch.manual_seed(1)
    shape = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=5, **shape, initializer_range=0.3, eos_token_id=None))
    target, prompt = Target(model, FakeTokenizer(), "five"), [0, 1, 2, 3, 4, 0, 2, 4, 1, 3, 0, 1]
    config = GenerationConfig(2, StaticTree(((1,), (2,), (3,))), temperature=1.0, candidates=candidates)
    drafter, cycles, runs = NgramDrafter(target), [], 600
    drawn = Counter(
        generate(target, drafter, prompt, replace(config, seed=seed), cycles.append).token_ids for seed in range(runs)
    )
    after = [[], *([token] for token in range(5))]
    first, *second = (model(torch.tensor([prompt + a])).logits[0, -1].double().softmax(-1) for a in after)
    law = (runs * first[:, None] * torch.stack(second)).flatten().detach().numpy()
    assert chisquare([drawn[i, j] for i in range(5) for j in range(5)], law).pvalue > 1e-4
    assert {cycle.draft.n_nodes for cycle in cycles} == {2, 3, 4}
    assert sum(cycle.accepted for cycle in cycles) > runs / 10


def test_a_budget_is_spent_on_candidates_alone(target):
    """Where verification costs nothing, all of them are verified, and none that is none."""
    free = CostProfile("t", "d", "cpu", "float32", 0.02, (1, 64), (0.02, 0.02), 0.001, 0.0, 7, 0.001)
    text, tree = [1, 2, 1, 3, 1, 2, 2, 1], DynamicTree(total=40, top_k=4, depth=4)
    everything = started(target, text).propose(tree)
    assert started(target, text).propose(tree, DraftOptions(budget=free)).tokens.tolist() == everything.tokens.tolist()
    assert 1 < everything.n_nodes < 40


# ---- refused


@pytest.mark.parametrize(
    ("longest", "shortest", "place"),
    [(0, 1, "longest"), (2, 3, "longest"), (3, 0, "shortest"), (2.0, 1, "longest"), (3, True, "shortest")],
)
def test_sizes_that_are_none_are_refused(target, longest, shortest, place):
    with pytest.raises(InputError, match=f"n-gram, {place}"):
        NgramDrafter(target, longest, shortest)


@pytest.mark.parametrize("scores", [TemperatureMap(0.3), IsotonicMap((0.0, 1.0), (0.4, 0.9))])
def test_a_calibration_makes_no_candidate_of_what_is_none(target, scores):
    options = DraftOptions(calibration=ScoreCalibration("ngram", "0" * 64, (scores,)))
    text, tree = [1, 2, 1, 3, 1, 2, 2, 1], DynamicTree(total=40, top_k=4, depth=4)
    raw, mapped = started(target, text).propose(tree), started(target, text).propose(tree, options)
    assert 1 < mapped.n_nodes == raw.n_nodes < 40
    assert mapped.tokens.min() >= 0
