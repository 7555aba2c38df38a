"""Full tree attention is not lossless, in either reading; what it does is what the official code does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fakes import VOCAB, random_target
from gumiho_decoder.acceptance.fta import FullTreeAttention, lengthened
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Draft
from gumiho_decoder.loop import generate, plain
from gumiho_theory import ChainStructure, DraftTree, DynamicTree, InputError

TREE = DynamicTree(total=24, top_k=4, depth=5, mlp_topk=4)


def draft_of(paths, tokens):
    tree = DraftTree.from_rank_paths(paths)
    mask = torch.tensor(tree.ancestor_mask)
    parents, depths, ranks = (torch.tensor(x) for x in (tree.parents, tree.depths, tree.ranks))
    return Draft(
        torch.tensor(tokens), parents, depths, mask, ranks, torch.zeros(1, VOCAB), -torch.ones_like(parents), 3
    )


DRAFT = draft_of([[1], [2], [3], [1, 1], [1, 2], [2, 1], [1, 1, 1], [1, 2, 1]], [9, 4, 5, 6, 7, 8, 7, 1, 2])


def test_short_paths_are_lengthened_by_the_most_common_node_of_each_missing_depth():
    paths, lengths = lengthened(DRAFT)
    # Leaves: 3 (depth 1), 6 (depth 2), 7 and 8 (depth 3). At depth 2 nodes 4, 5, 6 occur once each: the first, 4.
    assert paths.tolist() == [[0, 3, 4, 7], [0, 2, 6, 7], [0, 1, 4, 7], [0, 1, 5, 8]]
    assert lengths == [2, 3, 4, 4]


def test_literal_opens_the_mask_from_a_short_paths_last_node_to_what_lengthens_it():
    mask = FullTreeAttention("literal").mask(DRAFT)
    opened = (mask & ~DRAFT.ancestors).nonzero().tolist()
    assert opened == [[3, 4], [3, 7], [6, 7]]
    assert torch.equal(FullTreeAttention("released").mask(DRAFT), DRAFT.ancestors)


def test_a_borrowed_token_is_accepted_where_it_is_right():
    logits = torch.zeros(9, VOCAB)
    for node, token in ((0, 6), (3, 7), (4, 1), (7, 33)):  # root -> node 3 -> borrowed 4 -> borrowed 7
        logits[node, token] = 1.0
    accepted = FullTreeAttention("released").accept(DRAFT, logits)
    assert accepted.path == [0, 3, 4, 7]
    assert accepted.new == [6, 7, 1, 33]


class Lender:
    """Proposes the true next token as a leaf, and the true tokens behind it on a wrong sibling's branch."""

    positions = None

    def __init__(self, sequence):
        self.sequence = sequence

    def start(self, tokens, features):
        self.seen = len(tokens)

    def advance(self, tokens, features):
        self.seen += len(tokens)

    def propose(self, structure, options):
        a, b, c = (self.sequence + [0] * 3)[self.seen : self.seen + 3]
        draft = draft_of([[1], [2], [2, 1], [2, 1, 1]], [self.sequence[self.seen - 1], a, (a + 1) % VOCAB, b, c])
        return draft


@pytest.mark.parametrize("reading", ["off", "released", "literal"])
def test_both_readings_leave_greedy_decoding_and_say_that_they_may(reading, prompt):
    config = GenerationConfig(60, TREE, fta=reading)
    assert config.lossless == (reading == "off")
    assert ("lossy" in config.mode) == (reading != "off")
    left = borrowed = 0
    for seed in range(6):
        target = random_target(seed)
        expected = plain(target, prompt, GenerationConfig(90)).token_ids
        cycles = []
        out = generate(target, Lender([*prompt, *expected]), prompt, config, cycles.append)
        left += out.token_ids != expected[:60]
        for cycle in cycles:
            mask = cycle.draft.ancestors.numpy()
            borrowed += any(not mask[b, a] for a, b in zip(cycle.path, cycle.path[1:], strict=False))
    assert (left >= 5) == (borrowed >= 5) == (reading != "off")
    assert reading != "off" or left == 0


def test_off_is_lossless_and_the_default():
    assert GenerationConfig(4).fta == "off"
    assert GenerationConfig(4).lossless


def test_what_full_tree_attention_is_not_defined_for_is_refused():
    for changes in ({"structure": ChainStructure(3)}, {"structure": TREE, "temperature": 1.0}):
        with pytest.raises(InputError, match="fta"):
            GenerationConfig(4, **{"fta": "released", **changes})
    with pytest.raises(InputError, match="fta: found 'on'"):
        GenerationConfig(4, fta="on")


def test_the_chosen_path_is_the_first_longest(prompt):
    """As the official code picks it: argmax over paths in order of their leaves."""
    paths, _ = lengthened(DRAFT)
    for seed in range(200):
        choice = np.random.default_rng(seed).integers(0, 9, 9)
        logits = torch.nn.functional.one_hot(torch.tensor(choice), VOCAB).float()
        runs = []
        for path in paths.tolist():
            length = 0
            while length < 3 and int(DRAFT.tokens[path[length + 1]]) == choice[path[length]]:
                length += 1
            runs.append(length)
        best = int(np.argmax(runs))
        accepted = FullTreeAttention("released").accept(DRAFT, logits)
        assert accepted.path == paths[best].tolist()[: runs[best] + 1]
        assert accepted.new[-1] == choice[accepted.path[-1]]
