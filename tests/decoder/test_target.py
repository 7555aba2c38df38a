"""The target wrapper: tree verification and cache surgery beside plain reading; what is refused."""

from __future__ import annotations

import pytest
import torch

from fakes import random_target
from gumiho_decoder.target import check_tree_attention, load_target
from gumiho_decoder.tiny.making.stream import train_tokenizer
from gumiho_theory import DraftTree, InputError


@torch.inference_mode()
def test_each_node_of_a_tree_is_read_behind_its_own_path(target, prompt):
    tree = DraftTree.from_rank_paths([[1], [2], [1, 1], [1, 2], [2, 1], [1, 2, 1]])
    tokens = [9, 4, 30, 7, 7, 51, 2]
    target.prefill(prompt)
    mask = torch.tensor(tree.ancestor_mask)
    verified = target.verify(torch.tensor(tokens), mask, torch.tensor(tree.depths))
    for node in range(tree.n_nodes):
        path = [tokens[i] for i in tree.path_to(node)]
        out = target.model(torch.tensor([[*prompt, *path]]), output_hidden_states=True)
        torch.testing.assert_close(verified.logits[node], out.logits[0, -1], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(verified.features[node], out.hidden_states[-1][0, -1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("path", [[0], [0, 1], [0, 2], [0, 1, 4], [0, 1, 4, 6]])
@torch.inference_mode()
def test_keeping_a_path_leaves_the_cache_that_reading_it_would(path, target, prompt):
    tree = DraftTree.from_rank_paths([[1], [2], [1, 1], [1, 2], [2, 1], [1, 2, 1]])
    tokens = [9, 4, 30, 7, 7, 51, 2]
    assert path in [tree.path_to(node)[: len(path)] for node in range(tree.n_nodes)]
    target.prefill(prompt)
    target.verify(torch.tensor(tokens), torch.tensor(tree.ancestor_mask), torch.tensor(tree.depths))
    target.keep(tree.n_nodes, path, torch.tensor(path))
    assert target.length == len(prompt) + len(path)
    kept = [(layer.keys.clone(), layer.values.clone()) for layer in target.cache.layers]
    target.prefill([*prompt, *(tokens[i] for i in path)])
    for (keys, values), layer in zip(kept, target.cache.layers, strict=True):
        torch.testing.assert_close(keys, layer.keys, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(values, layer.values, atol=1e-4, rtol=1e-4)


def test_a_prompt_beyond_the_positions_is_refused():
    with pytest.raises(InputError, match="9 tokens"):
        random_target(positions=8).prefill([1] * 9)


def test_a_folder_without_a_model_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="target"):
        load_target(str(tmp_path))


def test_layers_whose_cache_slides_are_refused_by_name(tmp_path):
    from transformers import MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM

    common = dict(vocab_size=300, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2)
    tokenizer = train_tokenizer(["some text"], 270)
    sliding = MistralForCausalLM(MistralConfig(**common, num_key_value_heads=1, sliding_window=8))
    mixed = Qwen2ForCausalLM(
        Qwen2Config(**common, num_key_value_heads=1, use_sliding_window=True, sliding_window=8, max_window_layers=1)
    )
    for name, model in (("sliding", sliding), ("mixed", mixed)):
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        with pytest.raises(InputError, match="Sliding"):
            load_target(str(tmp_path / name))


def test_attention_that_does_not_honour_the_mask_is_refused(target):
    check_tree_attention(target)
    eager = random_target()
    eager.model.set_attn_implementation("eager")
    with pytest.raises(InputError, match="between tree and path"):
        check_tree_attention(eager)


def test_models_that_cannot_read_a_tree_are_refused_by_name(tmp_path):
    from transformers import BloomConfig, BloomForCausalLM, LlamaConfig, LlamaForCausalLM

    tokenizer = train_tokenizer(["some text"], 270)
    bloom = BloomForCausalLM(BloomConfig(vocab_size=300, hidden_size=16, n_layer=2, n_head=2))
    long = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=300,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=64,
            rope_parameters={
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0] * 4,
                "long_factor": [4.0] * 4,
                "original_max_position_embeddings": 16,
            },
        )
    )
    for name, model, words in (("bloom", bloom, "bloom"), ("long", long, "longrope")):
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        with pytest.raises(InputError, match=words):
            load_target(str(tmp_path / name))
