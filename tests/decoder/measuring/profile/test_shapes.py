"""Random models in known shapes: they have the known sizes, compute as real ones do, and ask for no absurd memory."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.embedded import embedded
from gumiho_decoder.loop import plain
from gumiho_decoder.measuring.profile import shapes
from gumiho_decoder.measuring.profile.shapes import SHAPES, load, random_drafter, random_target
from gumiho_decoder.target import check_tree_attention
from gumiho_theory import InputError

PARAMETERS = {"vicuna-7b": 6_738_415_616, "llama2-13b": 13_015_864_320, "llama3-8b": 8_030_261_248}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_known_shapes_have_the_published_numbers_of_parameters(name):
    shape = {k: v for k, v in SHAPES[name].items() if k != "rope_theta"}
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**shape | {"num_hidden_layers": 1}))
    layer = sum(p.numel() for p in model.model.layers.parameters())
    rest = sum(p.numel() for p in model.parameters()) - layer
    assert rest + shape["num_hidden_layers"] * layer == PARAMETERS[name]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_random_target_reads_trees_and_turns_by_exact_angles(dtype):
    target = random_target("tiny-shape", "cpu", dtype)
    check_tree_attention(target)
    assert target.dtype == getattr(torch, dtype)
    fresh = LlamaForCausalLM(target.model.config).model.rotary_emb
    assert target.model.model.rotary_emb.inv_freq.dtype == torch.float32
    assert torch.equal(target.model.model.rotary_emb.inv_freq, fresh.inv_freq)
    assert len(set(plain(target, [1, 2, 3], GenerationConfig(30)).token_ids)) > 3
    assert target.eos_token_ids == frozenset()


def test_the_same_weights_come_again():
    first, second = random_target("tiny-shape"), random_target("tiny-shape")
    for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b) and a.isfinite().all()


@pytest.mark.parametrize("method", shapes.METHODS)
def test_a_random_drafter_has_the_shapes_that_it_would_have_been_trained_with(method):
    target = random_target("tiny-shape", "cpu", "bfloat16")
    drafter = random_drafter(method, target)
    config_class, model_class, drafter_class = shapes.METHODS[method]
    assert type(drafter) is drafter_class and drafter.method == method
    made = model_class(config_class.for_target(target))
    assert {n: p.shape for n, p in made.named_parameters()} == {n: p.shape for n, p in drafter.model.named_parameters()}
    assert {p.dtype for p in drafter.model.parameters()} == {torch.bfloat16}
    assert all(p.isfinite().all() for p in drafter.model.parameters())


def test_a_drafters_shape_can_differ_from_what_fits_best():
    drafter = random_drafter("gumiho", random_target("tiny-shape"), serial_steps=3, parallel_heads=1)
    assert (drafter.serial_steps, drafter.depth) == (3, 4)


def test_a_drafters_angles_are_those_of_its_shape():
    drafter = random_drafter("hydra", random_target("tiny-shape"), prefix=True)
    config = drafter.model.config
    head = config.hidden_size // config.heads
    angles = next(m for m in drafter.model.modules() if hasattr(m, "inv_freq")).inv_freq
    torch.testing.assert_close(angles, config.rope_theta ** (-torch.arange(0, head, 2) / head))


def test_a_config_file_gives_its_shape_tied_embeddings_included():
    target = random_target(embedded("target") / "config.json")
    assert (target.hidden_size, target.vocab_size, target.positions) == (256, 4096, 1024)
    assert target.model.get_output_embeddings().weight is target.model.get_input_embeddings().weight
    wide = random_target(embedded("target") / "config.json", num_hidden_layers=1)
    assert len(wide.model.model.layers) == 1


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model_type": "mamba"}, "config.json, model_type: found 'mamba', wanted 'llama'"),
        ({"model_type": None}, "model_type"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": 256.0}, "hidden_size"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"vocab_size": 1 << 40}, "vocab_size"),
        ({"num_attention_heads": 3, "head_dim": None}, "num_attention_heads"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"head_dim": 5}, "head_dim"),
        ({"num_attention_heads": 256, "num_key_value_heads": 256, "head_dim": None}, "head_dim: found 1"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings"),
        ({"hidden_size": 65536, "vocab_size": 1 << 24}, "GiB of weights"),
    ],
)
def test_a_config_of_another_kind_or_out_of_range_is_refused_by_field(changes, named, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads((embedded("target") / "config.json").read_text()) | changes))
    with pytest.raises(InputError) as caught:
        random_target(path)
    assert named in str(caught.value)


def test_optional_fields_may_be_left_out(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", **SHAPES["tiny-shape"], "num_key_value_heads": None}))
    assert random_target(path).config.num_key_value_heads == 4


def test_a_name_that_is_neither_shape_nor_file_or_no_method_is_refused():
    with pytest.raises(InputError, match="vicuna-70b"):
        random_target("vicuna-70b")
    with pytest.raises(InputError, match="random:lookahead"):
        random_drafter("lookahead", random_target("tiny-shape"))


def test_either_of_a_pair_may_be_random(monkeypatch):
    target, drafter = load("random:tiny-shape", "ngram")
    assert (target.name, drafter.method) == ("random:tiny-shape", "ngram")
    target, drafter = load("tiny", "random:medusa", dtype="bfloat16")
    assert (target.name, drafter.name, target.dtype) == ("tiny", "random:medusa", torch.bfloat16)
    monkeypatch.setattr(shapes, "load_pair", lambda *names: names)
    assert load("tiny", "tiny:gumiho") == ("tiny", "tiny:gumiho", "float32", "cpu")


@pytest.mark.parametrize("settings", [{"dtype": "int8"}, {"device": "meta"}, {"device": "abacus"}, {"device": "auto"}])
def test_a_dtype_or_device_that_cannot_be_is_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        load("random:tiny-shape", "random:gumiho", **settings)
