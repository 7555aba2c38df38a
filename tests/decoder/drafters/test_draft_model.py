"""A small causal LM as drafter, beside the same model reading every path anew."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from fakes import FakeTokenizer
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, DynamicTree, InputError, StaticTree

TOKENS = [5, 17, 3, 44, 20, 8, 8, 31, 12]
TREE = StaticTree(((1,), (2,), (3,), (1, 1), (1, 2), (2, 1), (1, 1, 1), (1, 2, 2), (1, 1, 1, 1)))
STRUCTURES = [ChainStructure(6), TREE, DynamicTree(total=30, top_k=4, depth=5)]


def llama(seed: int, vocab: int = 61, *, layers: int = 2, positions: int = 128) -> Target:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=positions,
        initializer_range=1.0,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return Target(LlamaForCausalLM(config), FakeTokenizer(), f"llama-{seed}")


def gpt2(seed: int, positions: int) -> Target:
    """Learned positions: there is nothing to read beyond them."""
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=61, n_positions=positions, n_embd=16, n_layer=2, n_head=2, initializer_range=0.5)
    return Target(GPT2LMHeadModel(config), FakeTokenizer(), "gpt2")


@pytest.fixture(scope="module")
def large() -> Target:
    return llama(0, layers=3)


@pytest.fixture(scope="module")
def small() -> Target:
    return llama(1)


def started(draft: Target, target: Target, tokens: list[int] = TOKENS) -> DraftModelDrafter:
    drafter = DraftModelDrafter(draft, target, "small")
    drafter.start(torch.tensor(tokens), torch.zeros(len(tokens) - 1, target.hidden_size))
    return drafter


def alone(draft: Target, tokens: list[int], vocab: int) -> torch.Tensor:
    """The slow twin: log q behind `tokens`, all of them read in one forward without cache or mask."""
    known = draft.vocab_size
    logits = draft.model(torch.tensor([[t if t < known else 0 for t in tokens]]), use_cache=False).logits[0, -1]
    log_q = torch.full((vocab,), -torch.inf)
    log_q[:known] = torch.log_softmax(logits[:vocab].double(), -1).float()
    return log_q


def check_nodes(draft, target: Target, small: Target, text: list[int]) -> None:
    tree = draft.tree
    for node in range(draft.n_nodes):
        path = [int(draft.tokens[i]) for i in tree.path_to(node)]
        assert path[0] == text[-1]
        if draft.row[node] >= 0:
            wanted = alone(small, [*text, *path[1:]], target.vocab_size)
            torch.testing.assert_close(draft.log_q[draft.row[node]], wanted, atol=1e-4, rtol=1e-4)
    assert all(draft.row[parent] >= 0 for parent in tree.parents[1:])


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@torch.inference_mode()
def test_every_node_has_the_distribution_of_its_path_read_alone(structure, large, small):
    drafter = started(small, large)
    text = list(TOKENS)
    for new in ([], [7], [3, 50, 11]):  # advances between drafts: of those nothing is left in the cache
        if new:
            drafter.advance(torch.tensor(new), torch.zeros(len(new), large.hidden_size))
        text += new
        draft = drafter.propose(structure)
        assert draft.log_q.dtype == torch.float32
        check_nodes(draft, large, small, text)


@torch.inference_mode()
def test_a_chain_is_the_draft_models_own_greedy_text(large, small):
    text = list(TOKENS)
    for _ in range(10):
        text.append(int(alone(small, text, 61).argmax()))
    draft = started(small, large).propose(ChainStructure(10))
    assert draft.tokens.tolist() == text[len(TOKENS) - 1 :]
    assert (draft.depth, draft.n_nodes) == (10, 11)


@torch.inference_mode()
def test_a_target_that_drafts_for_itself_drafts_its_own_text(large):
    """Two caches of one model do not meet."""
    text = plain(large, TOKENS, GenerationConfig(30)).token_ids
    cycles = []
    drafter = DraftModelDrafter(large, large, "itself")
    config = GenerationConfig(30, ChainStructure(5))
    assert generate(large, drafter, TOKENS, config, cycles.append).token_ids == text
    assert [cycle.accepted for cycle in cycles] == [5] * len(cycles)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_what_is_decoded_is_the_targets_text(structure, large, small):
    wanted = plain(large, TOKENS, GenerationConfig(40)).token_ids
    drafter = DraftModelDrafter(small, large, "small")
    assert generate(large, drafter, TOKENS, GenerationConfig(40, structure)).token_ids == wanted


@torch.inference_mode()
def test_many_roots_at_once_are_each_prefix_alone(large, small):
    roots = torch.tensor([1, 8, 4, 5])
    drafter = started(small, large)
    generator = torch.Generator().manual_seed(0)
    # Levels of 3, 2 and 4 nodes a root, whose parents are anywhere in the level before.
    levels = [(torch.randint(61, (4, n), generator=generator), n) for n in (3, 2, 4)]
    parents = [torch.zeros(4, 3, dtype=torch.int64)]
    parents += [torch.randint(before, (4, n), generator=generator) for before, n in ((3, 2), (2, 4))]
    branches = drafter.branches(4, roots)
    many = [(branches.root(), torch.zeros(4, 1, dtype=torch.int64))]
    many += [branches.deeper(d, tokens, parents[d - 1]) for d, (tokens, _) in enumerate(levels, start=1)]
    drafter.release()
    for b, root in enumerate(roots.tolist()):
        paths = [[TOKENS[: root + 1]]]
        for (tokens, _), above in zip(levels, parents, strict=True):
            paths.append([[*paths[-1][p], t] for t, p in zip(tokens[b].tolist(), above[b].tolist(), strict=True)])
        for level, (log_q, row) in zip(paths, many, strict=True):
            for node, path in enumerate(level):
                wanted = alone(small, path, 61)
                torch.testing.assert_close(log_q[b, row[b, node]], wanted, atol=1e-4, rtol=1e-4)
    check_nodes(drafter.propose(TREE), large, small, TOKENS)  # the state is as it was


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@torch.inference_mode()
def test_trees_grown_from_many_roots_are_each_prefixs_tree(structure, large, small):
    roots = torch.tensor([1, 8, 4])
    drafter = started(small, large)
    grown = drafter.grow(
        structure, DraftOptions(), drafter.branches(structure.depth, roots), torch.tensor(TOKENS)[roots]
    )
    for b, root in enumerate(roots.tolist()):
        single = started(small, large, TOKENS[: root + 1]).propose(structure)
        assert grown.tokens[b].tolist() == single.tokens.tolist()
        assert grown.parents[b].tolist() == single.parents.tolist()


@pytest.mark.parametrize(("target_rows", "draft_rows"), [(61, 64), (64, 61)])
@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@torch.inference_mode()
def test_padded_vocabularies_meet_in_their_common_part(structure, target_rows, draft_rows):
    """Either may have more rows; a token of the text that the draft model does not have does not stop it."""
    target, draft = llama(0, target_rows), llama(1, draft_rows)
    text = [*TOKENS, 62, 4] if target_rows == 64 else TOKENS
    proposed = started(draft, target, text).propose(structure)
    assert proposed.log_q.shape[1] == target_rows
    assert int(proposed.tokens.max()) < 61
    torch.testing.assert_close(proposed.log_q.exp().sum(1), torch.ones(len(proposed.log_q)))
    check_nodes(proposed, target, draft, text)
    wanted = plain(target, text, GenerationConfig(30)).token_ids
    drafter = DraftModelDrafter(draft, target, "padded")
    assert generate(target, drafter, text, GenerationConfig(30, structure)).token_ids == wanted


def test_the_substitute_is_the_unknown_token_or_else_the_padding():
    @dataclass
    class Special(FakeTokenizer):
        unk_token_id: int | None = None
        pad_token_id: int | None = None

    target, draft = llama(0, 64), llama(1, 61)
    for unknown, padding, wanted in ((7, 9, 7), (None, 9, 9), (None, None, 0), (63, 9, 9)):
        draft.tokenizer = Special(unk_token_id=unknown, pad_token_id=padding)
        assert DraftModelDrafter(draft, target, "x").alignment.substitute == wanted


@torch.inference_mode()
def test_draws_are_draws_from_the_recorded_distributions(large, small):
    random = torch.Generator().manual_seed(3)
    draft = started(small, large).propose(TREE, DraftOptions(random, 0.7))
    assert draft.sampled
    torch.testing.assert_close(draft.log_q.exp().sum(1), torch.ones(len(draft.log_q)))
    wanted = torch.log_softmax(alone(small, TOKENS, 61) / 0.7, -1)
    torch.testing.assert_close(draft.log_q[draft.row[0]], wanted, atol=1e-4, rtol=1e-4)
    siblings = list(zip(draft.parents.tolist(), draft.tokens.tolist(), strict=True))
    assert len(set(siblings)) == draft.n_nodes


def test_other_tokenizers_are_refused(large, small):
    class Other(FakeTokenizer):
        def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
            return {"input_ids": [ord(c) % 59 for c in text]}

    other = Target(small.model, Other(), "other")
    with pytest.raises(InputError, match="drafter 'x', tokenizer"):
        DraftModelDrafter(other, large, "x")


def test_a_text_beyond_the_draft_models_positions_is_refused_at_the_start(large):
    short = gpt2(0, len(TOKENS) - 1)
    drafter = DraftModelDrafter(short, large, "short")
    assert drafter.positions == 8
    with pytest.raises(InputError) as error:
        started(short, large)
    assert "small" in error.value.place and error.value.found == "8"
    assert "9" in error.value.wanted and "llama-0" in error.value.wanted


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_near_the_end_of_the_draft_models_positions_drafts_shrink_and_decoding_goes_on(structure, large):
    short, cycles = gpt2(0, 20), []
    drafter = DraftModelDrafter(short, large, "short")
    wanted = plain(large, TOKENS, GenerationConfig(40)).token_ids
    found = generate(large, drafter, TOKENS, GenerationConfig(40, structure), cycles.append)
    assert found.token_ids == wanted
    assert {cycle.draft.depth for cycle in cycles} >= {structure.depth, 1, 0}
    for cycle in cycles:
        assert not cycle.draft.depth or cycle.position + cycle.draft.depth <= 20
    assert cycles[-1].draft.n_nodes == 1


@torch.inference_mode()
def test_the_deepest_draft_that_fits_is_drafted_and_one_deeper_is_refused(large):
    """Text of n tokens, depth d: n + d - 1 tokens are read."""
    drafter = started(gpt2(0, len(TOKENS) + 2), large)
    assert drafter.propose(ChainStructure(3)).depth == 3
    with pytest.raises(InputError, match="at least 12, for depth 4"):
        drafter.propose(ChainStructure(4))
    drafter.branches(3)
    drafter.branches(3, torch.tensor([1, 8]))
    drafter.release()
    for roots in (None, torch.tensor([1, 8])):
        with pytest.raises(InputError, match="at least 12, for depth 4"):
            drafter.branches(4, roots)


@pytest.mark.parametrize("read", [5, 9])
@torch.inference_mode()
def test_a_text_as_long_as_the_positions_still_has_one_token_drafted(read, large):
    short = gpt2(0, len(TOKENS))
    drafter = started(short, large, TOKENS[:read])
    if TOKENS[read:]:
        drafter.advance(torch.tensor(TOKENS[read:]), torch.zeros(len(TOKENS) - read, large.hidden_size))
    assert int(drafter.propose(ChainStructure(1)).tokens[1]) == int(alone(short, TOKENS, 61).argmax())


def test_a_draft_model_without_a_limit_has_none(large):
    endless = llama(1)
    endless.config = SimpleNamespace()  # as of models without position embeddings (ALiBi)
    drafter = DraftModelDrafter(endless, large, "endless")
    assert drafter.positions is None
    wanted = plain(large, TOKENS, GenerationConfig(20)).token_ids
    assert generate(large, drafter, TOKENS, GenerationConfig(20, ChainStructure(4))).token_ids == wanted
