"""The drafter itself: fast ways beside slow twins, and what a node may see."""

from __future__ import annotations

import json

import pytest
import torch

from fakes import random_drafter, random_target
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.gumiho.drafter import GumihoDrafter
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel, StackedHeads
from gumiho_theory import ChainStructure, DynamicTree, InputError, Structure

TOKENS = [5, 17, 3, 44, 20, 8, 8, 31, 12]


def started(target, drafter):
    with torch.inference_mode():
        features = target.prefill(TOKENS[:-1]).features
        drafter.start(torch.tensor(TOKENS), features)
    return features


def step_by_step(drafter, target, features, path):
    """The slow twin: log q behind `path` (drafted tokens), the serial Transformer read anew over the whole text."""
    model, config = drafter.model, drafter.config
    embed, head = target.model.get_input_embeddings(), target.model.get_output_embeddings()
    tokens = [*TOKENS[1:], *path[: config.serial_steps]]
    known = features
    inputs = None
    for n in range(len(features), len(tokens) + 1):
        read = embed(torch.tensor(tokens[:n])), known[:n]
        pairs, inputs = model.combine(*read), model.combine_for_heads(*read)
        out = model.serial(inputs_embeds=pairs[None], use_cache=False).last_hidden_state[0]
        known = torch.cat([known[: len(features)], out[len(features) - 1 :]])
    if len(path) < config.serial_steps:
        return torch.log_softmax(head(out[-1]), -1)
    window = inputs[-config.window :].flatten()
    return torch.log_softmax(head(model.heads(window)[len(path) - config.serial_steps]), -1)


@pytest.mark.parametrize("own_input", [False, True])
@pytest.mark.parametrize(("serial", "parallel"), [(2, 5), (1, 3), (3, 2)])
@torch.inference_mode()
def test_every_node_of_a_tree_is_scored_as_its_own_path_alone_would_be(serial, parallel, own_input, target):
    """Siblings are blind to each other, and a head reads its own branch's parent: neither holds in the released one."""
    drafter = random_drafter(target, serial_steps=serial, parallel_heads=parallel, own_input=own_input)
    features = started(target, drafter)
    draft = drafter.propose(DynamicTree(total=40, top_k=5, depth=serial + parallel, mlp_topk=6))
    assert draft.tree.depth >= serial + 1
    for node in range(draft.tree.n_nodes):
        path = [int(draft.tokens[i]) for i in draft.tree.path_to(node)][1:]
        if draft.row[node] >= 0:
            expected = step_by_step(drafter, target, features, path)
            torch.testing.assert_close(draft.log_q[draft.row[node]], expected, atol=2e-5, rtol=1e-4)
        else:
            assert node in draft.tree.leaves


@pytest.mark.parametrize("length", range(8))
@torch.inference_mode()
def test_a_chain_is_the_tree_of_width_one(length, target):
    drafter = random_drafter(target)
    started(target, drafter)
    chain = drafter.propose(ChainStructure(length))
    assert chain.tree.n_nodes == length + 1
    if length:
        tree = drafter.propose(DynamicTree(total=length + 1, top_k=1, depth=length, mlp_topk=1))
        assert tree.tokens.tolist() == chain.tokens.tolist()
        assert tree.tree.parents.tolist() == chain.tree.parents.tolist()
        assert tree.row.tolist() == chain.row.tolist() == [*range(length), -1]
        torch.testing.assert_close(tree.log_q, chain.log_q, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_a_tree_keeps_the_best_scored_nodes_and_their_ranks(target):
    drafter = random_drafter(target)
    started(target, drafter)
    wide = drafter.propose(DynamicTree(total=200, top_k=5, depth=7, mlp_topk=6))
    small = drafter.propose(DynamicTree(total=12, top_k=5, depth=7, mlp_topk=6))

    def scored(draft):
        scores = {}
        for node in range(1, draft.tree.n_nodes):
            path = draft.tree.path_to(node)
            rows = [draft.row[i] for i in path[:-1]]
            tokens = tuple(int(draft.tokens[i]) for i in path[1:])
            scores[tokens] = sum(float(draft.log_q[r, t]) for r, t in zip(rows, tokens, strict=True))
            rank = 1 + int((draft.log_q[rows[-1]] > draft.log_q[rows[-1], tokens[-1]]).sum())
            assert draft.tree.ranks[node] == rank
        return scores

    everything, kept = scored(wide), scored(small)
    assert len(everything) == 5 + 5 * 5 + 5 * 6  # all candidates of serial levels, the best of parallel ones
    best = sorted(everything, key=everything.get, reverse=True)[:11]
    assert set(kept) == set(best)


@torch.inference_mode()
def test_proposing_leaves_the_verified_state_as_it_was(target):
    drafter = random_drafter(target)
    started(target, drafter)
    first = drafter.propose(ChainStructure(7)).tokens.tolist()
    drafter.propose(DynamicTree(total=30, top_k=4, depth=7, mlp_topk=5))
    assert drafter.propose(ChainStructure(7)).tokens.tolist() == first


@torch.inference_mode()
def test_advancing_step_by_step_equals_starting_anew(target):
    features = target.prefill(TOKENS).features
    whole, stepwise = random_drafter(target), random_drafter(target)
    tokens = torch.tensor([*TOKENS, 9])
    whole.start(tokens, features)
    stepwise.start(tokens[:4], features[:3])
    stepwise.advance(tokens[4:7], features[3:6])
    stepwise.advance(tokens[7:], features[6:])
    a, b = whole.propose(ChainStructure(7)), stepwise.propose(ChainStructure(7))
    assert a.tokens.tolist() == b.tokens.tolist()
    torch.testing.assert_close(a.log_q, b.log_q, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("serial", "parallel"), [(2, 5), (1, 3), (4, 0)])
@pytest.mark.parametrize(
    "structure", ["chain:3", "tree:total=20,top_k=3,depth=3,mlp_topk=4", "static:[[1],[2],[1,1],[2,2],[1,1,3]]"]
)
@torch.inference_mode()
def test_many_starts_at_once_draft_what_each_alone_would(serial, parallel, structure, target):
    drafter = random_drafter(target, serial_steps=serial, parallel_heads=parallel)
    structure = Structure.parse(structure)
    tokens, features = torch.tensor(TOKENS), target.prefill(TOKENS[:-1]).features
    roots = torch.tensor([1, 4, 7, 8])
    drafter.start(tokens, features)
    together = drafter.grow(structure, DraftOptions(), drafter.branches(structure.depth, roots), tokens[roots])
    drafter.release()
    for i, root in enumerate(roots.tolist()):
        drafter.start(tokens[: root + 1], features[:root])
        alone = drafter.propose(structure)
        for name in ("tokens", "parents", "depths", "ranks", "ancestors", "row"):
            assert torch.equal(getattr(together, name)[i], getattr(alone, name)), name
        torch.testing.assert_close(together.log_q[i], alone.log_q, atol=1e-5, rtol=1e-5)


def test_stacked_heads_equal_the_heads_one_by_one(target):
    drafter = random_drafter(target)
    inputs = torch.randn(9, 64)
    for heads in range(1, 6):
        torch.testing.assert_close(
            StackedHeads(drafter.model.heads)(inputs, heads), drafter.model.heads(inputs)[:heads]
        )


def test_released_initialisation_starts_heads_at_zero_weight(target):
    model = GumihoModel(GumihoConfig.for_target(target))
    assert all((linear.weight == 0).all() for head in model.heads for linear in head)


def test_saved_heads_come_back_the_same(target, tmp_path):
    model = random_drafter(target).model
    model.save_pretrained(tmp_path / "new", target_sha256="abc")
    again = GumihoModel.from_pretrained(tmp_path / "new")
    assert again.config == model.config
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))


def test_a_drafter_of_another_size_or_vocabulary_is_refused_by_name(target):
    config = GumihoConfig.for_target(target)
    for field, value in (("hidden_size", 64), ("vocab_size", 99)):
        other = GumihoModel(GumihoConfig(**{**vars(config), field: value}))
        with pytest.raises(InputError, match=f"{field}: found {value}, wanted {getattr(config, field)}"):
            GumihoDrafter(other, target, "other")


def test_a_missing_extra_or_misshapen_tensor_is_named(target, tmp_path):
    from safetensors.torch import load_file, save_file

    random_drafter(target).model.save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    good = load_file(weights)
    for broken, message in (
        ({k: v for k, v in good.items() if k != "fc.bias"}, "fc.bias: found nothing"),
        ({**good, "extra": torch.zeros(1)}, "extra: found .1,., wanted no such tensor"),
        ({**good, "fc.bias": torch.zeros(3)}, "fc.bias: found .3,., wanted .32,."),
    ):
        save_file(broken, weights)
        with pytest.raises(InputError, match=message):
            GumihoModel.from_pretrained(tmp_path)
    weights.write_bytes(b"\x80\x04not safetensors")
    with pytest.raises(InputError, match="safetensors"):
        GumihoModel.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"method": "medusa"}', '{"method": "gumiho", "hidden_size": "wide"}', "{" * 100]
)
def test_a_config_that_is_no_gumiho_config_is_refused(text, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match="config.json"):
        GumihoModel.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", 0),
        ("hidden_size", 10**30),
        ("heads", 0),
        ("heads", 3),
        ("key_value_heads", 3),
        ("serial_steps", 0),
        ("serial_layers", 0),
        ("head_blocks", 10**5),
        ("parallel_heads", 10**4),
        ("rope_theta", 10**400),
        ("norm_eps", 0),
        ("norm_eps", None),
        ("vocab_size", True),
    ],
)
def test_an_absurd_shape_is_refused_by_field_before_anything_is_built(field, value, target, tmp_path):
    random_drafter(target).model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, field: value}))
    with pytest.raises(InputError, match=rf"config\.json[,:] {field}: found"):
        GumihoModel.from_pretrained(tmp_path)


def test_a_shape_that_the_weights_do_not_have_is_refused_before_it_is_allocated(target, tmp_path):
    random_drafter(target).model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    huge = {"hidden_size": 65536, "heads": 1024, "key_value_heads": 1024, "parallel_heads": 64, "head_blocks": 8}
    (tmp_path / "config.json").write_text(json.dumps({**config, **huge}))
    with pytest.raises(InputError, match=r"model\.safetensors, tensor"):
        GumihoModel.from_pretrained(tmp_path)


def test_weights_that_are_no_numbers_are_refused_by_tensor(target, tmp_path):
    model = random_drafter(target).model
    with torch.no_grad():
        model.fc.bias[3] = float("nan")
    model.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"tensor fc\.bias: found nan"):
        GumihoModel.from_pretrained(tmp_path)


def test_grouped_query_attention_and_rope_base_follow_the_target():
    config = GumihoConfig.for_target(random_target())
    assert (config.heads, config.key_value_heads, config.rope_theta) == (4, 2, 10000.0)


def test_half_precision_keeps_the_rotary_frequencies_exact(target):
    """In bfloat16 they would be off by radians a thousand positions on."""
    half = random_target()
    half.model.to(torch.bfloat16)
    drafter = random_drafter(half)
    assert drafter.model.fc.weight.dtype == torch.bfloat16
    assert drafter.model.serial.rotary_emb.inv_freq.dtype == torch.float32
    assert torch.equal(
        drafter.model.serial.rotary_emb.inv_freq, random_drafter(target).model.serial.rotary_emb.inv_freq
    )
