"""Every kind of target: exact with every kind of structure; what cannot be exact is refused by name."""

from __future__ import annotations

import copy

import pytest
import torch

from fakes import VOCAB, FakeTokenizer, random_drafter
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter
from gumiho_decoder.drafters.eagle.drafter import EagleDrafter, EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.hydra.drafter import HydraDrafter
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.drafters.medusa import MedusaDrafter, MedusaModel
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.target import Target, check_tree_attention, load_target
from gumiho_decoder.tiny.making.stream import train_tokenizer
from gumiho_theory import InputError, Structure
from scripted import ScriptedDrafter, mixed
from targets import KINDS, model_of, target_of

STRUCTURES = (
    "chain:5",
    "static:[[1],[2],[3],[1,1],[1,2],[2,1],[1,1,1],[1,2,1],[1,1,1,1]]",
    "tree:total=24,top_k=4,depth=5,mlp_topk=5",
)
PROMPT = [5, 17, 3, 44, 20, 8]


@pytest.fixture(scope="module", params=sorted(KINDS))
def kind(request):
    return target_of(request.param)


@pytest.mark.filterwarnings("ignore")
def test_greedy_decoding_equals_transformers_generate_on_every_kind(kind):
    ids = torch.tensor([PROMPT])
    out = kind.model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=60)
    expected = tuple(out[0, len(PROMPT) :].tolist())
    assert len(set(expected)) >= 10
    check_tree_attention(kind)
    script = [*PROMPT, *plain(kind, PROMPT, GenerationConfig(70)).token_ids]
    verdicts = []
    for structure in STRUCTURES:
        config = GenerationConfig(60, Structure.parse(structure))
        for drafter in (ScriptedDrafter(script, VOCAB, mixed), random_drafter(kind)):
            cycles = []
            made = generate(kind, drafter, PROMPT, config, cycles.append)
            verdicts.append(compare(kind, PROMPT, expected, made.token_ids).verdict)
            if drafter.name == "scripted":
                assert max(cycle.accepted for cycle in cycles) >= 3
    assert verdicts == ["equal"] * 6


@pytest.mark.filterwarnings("ignore")
def test_every_method_with_every_structure_equals_plain_decoding_on_every_kind(kind):
    torch.manual_seed(1)
    eagle = EagleModel(SerialConfig.for_target(kind))
    drafters = [
        EagleDrafter(eagle, kind, "eagle"),
        MedusaDrafter(MedusaModel.new(kind, medusa_heads=5), kind, "medusa"),
        HydraDrafter(HydraModel.new(kind, hydra_heads=5, hydra_layers=2), kind, "hydra"),
        HydraDrafter(HydraModel.new(kind, hydra_heads=5, prefix=True), kind, "hydra++"),
        DraftModelDrafter(target_of("llama", 0), kind, "a LLaMA"),
        DraftModelDrafter(Target(copy.deepcopy(kind.model), FakeTokenizer(), "twin"), kind, "its twin"),
        NgramDrafter(kind),
    ]
    expected = plain(kind, PROMPT, GenerationConfig(20)).token_ids
    for drafter in drafters:
        for structure in STRUCTURES:
            cycles = []
            made = generate(kind, drafter, PROMPT, GenerationConfig(20, Structure.parse(structure)), cycles.append)
            assert compare(kind, PROMPT, expected, made.token_ids).verdict == "equal", (drafter.name, structure)
            if drafter.name == "its twin" and not structure.startswith("tree"):
                assert max(cycle.accepted for cycle in cycles) == Structure.parse(structure).depth


def test_a_drafter_of_a_kind_that_is_shaped_otherwise_still_fits(kind):
    drafter = random_drafter(kind)
    assert drafter.config.hidden_size == kind.hidden_size
    assert drafter.config.hidden_size % (2 * drafter.config.heads) == 0
    with torch.inference_mode():
        read = kind.prefill(PROMPT)
        expected = read.logits.log_softmax(-1)
        torch.testing.assert_close(kind.log_probabilities(read.features[-1:]), expected, atol=1e-4, rtol=1e-4)


def saved(model, folder):
    model.save_pretrained(folder)
    train_tokenizer(["some text"], 270).save_pretrained(folder)
    return str(folder)


def test_features_that_the_lm_head_reads_otherwise_are_refused_for_heads():
    target = target_of("llama")
    check_tree_attention(target)
    target.note_features(3.0)
    with pytest.raises(InputError, match="last hidden state"):
        random_drafter(target)


def test_a_model_spread_by_a_device_map_decodes_the_same(tmp_path):
    folder = saved(model_of("llama"), tmp_path)
    spread = load_target(folder, device_map={"": "cpu"})
    whole = load_target(folder)
    config = GenerationConfig(30, Structure.parse(STRUCTURES[2]))
    made = generate(spread, random_drafter(spread), PROMPT, config)
    assert made.token_ids == plain(whole, PROMPT, config).token_ids


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("gemma2", {}, "Sliding"),
        ("mistral", {"sliding_window": 16}, "Sliding"),
        ("mamba", {}, "mamba|LinearAttention|Mamba"),
        ("jamba", {}, "Linear|Hybrid|jamba"),
    ],
)
def test_caches_that_cannot_be_cut_back_are_refused_by_name(kind, changes, words, tmp_path):
    with pytest.raises(InputError, match=words):
        load_target(saved(model_of(kind, **changes), tmp_path))


def test_an_encoder_decoder_is_refused_by_name(tmp_path):
    from transformers import T5Config, T5ForConditionalGeneration

    shape = dict(vocab_size=300, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    folder = saved(T5ForConditionalGeneration(T5Config(**shape)), tmp_path)
    with pytest.raises(InputError, match="T5"):
        load_target(folder)
