"""Medusa: one product over all heads beside the heads one by one; what a position's distribution depends on."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear, silu

from fakes import VOCAB, random_target
from grown import TOKENS, check_advance, check_behind, check_chain, check_roots, shaken, started, structures
from gumiho_decoder.drafters.medusa import MedusaConfig, MedusaDrafter, MedusaModel
from gumiho_theory import ChainStructure, DynamicTree, InputError


@pytest.fixture(scope="module")
def drafter(target):
    model = MedusaModel(MedusaConfig.for_target(target, medusa_heads=4, medusa_layers=2))
    shaken(model)
    return MedusaDrafter(model, target, "random")


def one_head(model, head, feature):
    """The slow twin: one head, written out."""
    x = feature
    for block in model.blocks:
        x = x + silu(linear(x, block.weight[head], block.bias[head]))
    return torch.log_softmax(linear(x, model.vocabulary.weight[head]), -1)


@pytest.mark.parametrize("structure", structures(4), ids=str)
@torch.inference_mode()
def test_head_i_gives_position_i_from_the_feature_before_the_root(structure, drafter, target):
    features = started(drafter, target)
    draft = drafter.propose(structure)

    def behind(tokens, features, path):
        return one_head(drafter.model, len(path), features[len(tokens) - 2])

    check_behind(draft, 4, features, behind)
    if isinstance(structure, ChainStructure):
        check_chain(draft, features, behind)


@pytest.mark.parametrize("structure", structures(4), ids=str)
@torch.inference_mode()
def test_many_roots_at_once_equal_each_prefix_alone(structure, drafter, target):
    check_roots(drafter, structure, started(drafter, target))


@torch.inference_mode()
def test_advancing_equals_starting_anew(drafter, target):
    check_advance(drafter, structures(4)[2], started(drafter, target))


@torch.inference_mode()
def test_positions_behind_the_first_are_parallel_in_a_dynamic_tree(drafter, target):
    started(drafter, target)
    draft = drafter.propose(DynamicTree(total=200, top_k=3, depth=4, mlp_topk=5, pruning=6))
    assert [int((draft.depths == depth).sum()) for depth in range(5)] == [1, 3, 6, 6, 6]
    assert draft.log_q.shape == (4, VOCAB)


@torch.inference_mode()
def test_only_the_heads_that_the_depth_needs_are_run(drafter, target):
    started(drafter, target)
    assert drafter.propose(ChainStructure(2)).log_q.shape == (2, VOCAB)
    assert drafter.propose(ChainStructure(0)).n_nodes == 1


def test_deeper_than_the_heads_is_refused(drafter):
    with pytest.raises(InputError, match="depth 5, wanted at most 4, as drafter 'random' reaches"):
        drafter.propose(ChainStructure(5))


@torch.inference_mode()
def test_new_heads_start_as_the_targets_lm_head(target):
    model = MedusaModel.new(target, medusa_heads=3)
    features = target.prefill(TOKENS).features
    logits = model(features, 3)
    assert logits.shape == (3, len(TOKENS), VOCAB)
    torch.testing.assert_close(logits, target.model.get_output_embeddings()(features).expand(3, -1, -1))


def test_gradients_reach_every_weight_of_new_heads(target):
    model = MedusaModel.new(target, medusa_heads=3)
    torch.log_softmax(model(torch.randn(5, 32), 3), -1)[..., 0].sum().backward()
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in model.parameters())


def test_saved_heads_come_back_the_same(drafter, tmp_path):
    drafter.model.save_pretrained(tmp_path, card="a note")
    again = MedusaModel.from_pretrained(tmp_path)
    assert again.config == drafter.config
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in drafter.model.state_dict().items())


def test_heads_of_another_target_are_refused_by_name(target):
    for field, value in (("hidden_size", 64), ("vocab_size", 99)):
        model = MedusaModel(MedusaConfig.for_target(target, **{field: value}))
        with pytest.raises(InputError, match=f"'other', {field}: found {value}"):
            MedusaDrafter(model, target, "other")


@torch.inference_mode()
def test_half_precision_drafts_and_leaves_log_q_float32():
    half = random_target(spread=0.3)
    half.model.to(torch.bfloat16)
    drafter = MedusaDrafter(MedusaModel.new(half), half, "half")
    started(drafter, half)
    draft = drafter.propose(structures(4)[2])
    assert draft.log_q.dtype == torch.float32 and bool(draft.log_q.isfinite().all())
