"""Hydra and Hydra++: every head reads its node's own path; the prefix layer reads verified features only."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear, silu

from fakes import VOCAB, random_target
from grown import TOKENS, check_advance, check_behind, check_chain, check_roots, shaken, started, structures
from gumiho_decoder.drafters.growing.heads import placed
from gumiho_decoder.drafters.hydra.drafter import HydraDrafter
from gumiho_decoder.drafters.hydra.model import HydraConfig, HydraModel
from gumiho_theory import ChainStructure, DynamicTree, InputError

KINDS = {
    "hydra": {},
    "hydra++": {"prefix": True},
    "ungrounded": {"grounded": False},
    "ungrounded++": {"grounded": False, "prefix": True},
}


def random_hydra(target, kind):
    model = HydraModel(HydraConfig.for_target(target, hydra_heads=3, hydra_layers=2, **KINDS[kind]))
    shaken(model)
    return HydraDrafter(model, target, "random")


@pytest.fixture(scope="module", params=KINDS)
def drafter(request, target):
    return random_hydra(target, request.param)


def read_alone(drafter, target):
    """The slow twin: one head on one path, written out; the prefix layer read anew over the whole text."""

    def behind(tokens, features, path):
        model = drafter.model
        seen = model.condition(features[None, : len(tokens) - 1])[0] if model.prefix else features[: len(tokens) - 1]
        x = seen[-1]
        if model.config.grounded:
            x = torch.cat([x, *target.embed(torch.tensor([tokens[-1], *path]))])
        head = model.heads[len(path)]
        for block in head.blocks:
            skip = x if x.shape[-1] == 32 else linear(x, block.skip.weight, block.skip.bias)
            x = skip + silu(linear(x, block.linear.weight, block.linear.bias))
        return torch.log_softmax(linear(x, head.vocabulary.weight, head.vocabulary.bias), -1)

    return behind


@pytest.mark.parametrize("structure", structures(3), ids=str)
@torch.inference_mode()
def test_every_node_of_a_draft_is_scored_as_its_own_path_alone_would_be(structure, drafter, target):
    features = started(drafter, target)
    draft = drafter.propose(structure)
    behind = read_alone(drafter, target)
    check_behind(draft, 3, features, behind)
    if isinstance(structure, ChainStructure):
        check_chain(draft, features, behind)


@pytest.mark.parametrize("structure", structures(3), ids=str)
@torch.inference_mode()
def test_many_roots_at_once_equal_each_prefix_alone(structure, drafter, target):
    check_roots(drafter, structure, started(drafter, target))


@torch.inference_mode()
def test_advancing_equals_starting_anew(drafter, target):
    check_advance(drafter, structures(3)[2], started(drafter, target))


@torch.inference_mode()
def test_the_prefix_layer_makes_heads_depend_on_the_text_further_back(target):
    for kind, depends in (("hydra", False), ("hydra++", True)):
        drafter = random_hydra(target, kind)
        features = started(drafter, target)
        before = drafter.propose(ChainStructure(1)).log_q
        changed = features.clone()
        changed[2] += 1.0
        drafter.start(torch.tensor(TOKENS), changed)
        assert torch.equal(drafter.propose(ChainStructure(1)).log_q, before) is not depends


@torch.inference_mode()
def test_grounded_heads_are_serial_and_ungrounded_ones_parallel(target):
    for kind, serial, widths in (("hydra", None, [1, 3, 9, 9]), ("ungrounded", 1, [1, 3, 5, 5])):
        drafter = random_hydra(target, kind)
        assert drafter.serial_steps == serial
        started(drafter, target)
        draft = drafter.propose(DynamicTree(total=200, top_k=3, depth=3, mlp_topk=5))
        assert [int((draft.depths == depth).sum()) for depth in range(4)] == widths


def test_deeper_than_the_heads_is_refused(drafter):
    with pytest.raises(InputError, match="depth 4, wanted at most 3, as drafter 'random' reaches"):
        drafter.propose(ChainStructure(4))


def test_new_heads_read_out_through_the_targets_lm_head(target):
    model = HydraModel.new(target, hydra_layers=1)
    x = torch.randn(2, 64)
    hidden = model.heads[0].blocks(x)
    torch.testing.assert_close(model.heads[0](x), target.model.get_output_embeddings()(hidden))


def test_saved_heads_come_back_the_same(drafter, tmp_path):
    drafter.model.save_pretrained(tmp_path, card="a note")
    again = HydraModel.from_pretrained(tmp_path)
    assert again.config == drafter.config
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in drafter.model.state_dict().items())


def test_heads_of_another_target_are_refused_by_name(target):
    for field, value in (("hidden_size", 64), ("vocab_size", 99)):
        model = HydraModel(HydraConfig.for_target(target, **{field: value}))
        with pytest.raises(InputError, match=f"'other', {field}: found {value}"):
            HydraDrafter(model, target, "other")


def test_attention_that_cannot_be_is_refused_by_field(target):
    with pytest.raises(InputError, match="key_value_heads: found 3, wanted a divisor of 4"):
        HydraConfig.for_target(target, key_value_heads=3)


@torch.inference_mode()
def test_half_precision_keeps_the_rotary_angles_exact_and_log_q_float32():
    """In bfloat16 the frequencies would be off by a four-hundredth: at position 1000 by radians."""
    half = random_target(spread=0.3)
    half.model.to(torch.bfloat16)
    model = HydraModel.new(half, prefix=True)
    angles = model.prefix.rotary_emb.inv_freq.clone()
    drafter = HydraDrafter(model, half, "half")
    assert {parameter.dtype for parameter in drafter.model.parameters()} == {torch.bfloat16}
    assert torch.equal(drafter.model.prefix.rotary_emb.inv_freq, angles)
    started(drafter, half)
    draft = drafter.propose(structures(3)[2])
    assert draft.log_q.dtype == torch.float32 and draft.log_q.shape[1] == VOCAB
    assert bool(draft.log_q.isfinite().all())


def test_placing_a_model_keeps_tied_weights_tied(target):
    tied = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)])
    tied[1].weight = tied[0].weight
    placed(tied, torch.device("cpu"), torch.float16)
    assert tied[1].weight is tied[0].weight and tied[0].weight.dtype == torch.float16
