"""What a hostile tester found, so that it stays found: odd weights, strangers' folders, files in the way."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from fakes import VOCAB, FakeTokenizer, random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.hydra.drafter import HydraDrafter
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.drafters.medusa import MedusaDrafter, MedusaModel
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.prompts import Prompt
from gumiho_decoder.measuring.runs import encode
from gumiho_decoder.target import Target, load_target
from gumiho_decoder.tiny.making.stream import train_tokenizer
from gumiho_theory import InputError, IsotonicMap, ScoreCalibration, Structure
from targets import model_of

STRUCTURES = ("chain:4", "static:[[1],[2],[2,1]]", "tree:total=16,top_k=4,depth=2", "tree:total=8,top_k=3,depth=4")


@pytest.mark.parametrize("method", ["gumiho", "medusa", "hydra"])
@pytest.mark.parametrize("scale", [1e10, 1e20])
def test_heads_that_overflow_draft_badly_but_never_change_the_output(method, scale, prompt):
    """Their distributions are nan, which would sort before the root and break the tree."""
    target = random_target(3)
    drafter = {
        "gumiho": lambda: random_drafter(target),
        "medusa": lambda: MedusaDrafter(MedusaModel.new(target), target, "medusa"),
        "hydra": lambda: HydraDrafter(HydraModel.new(target), target, "hydra"),
    }[method]()
    for parameter in drafter.model.parameters():
        parameter.data.add_(0.1).mul_(scale)
    for text in STRUCTURES:
        config, recorder = GenerationConfig(40, Structure.parse(text)), Recorder()
        made = generate(target, drafter, prompt, config, recorder.prompt("a", None, 0))
        assert made.token_ids == plain(target, prompt, config).token_ids, text
        assert recorder.trace({}).committed.sum() == 39


@pytest.mark.parametrize("knots", [(1 - 1e-9, 1.0), (0.0, 1e-300), (0.0, 1e-46, 1.0)])
@pytest.mark.parametrize("scale", [1, 20])
def test_knots_closer_than_single_precision_tells_change_no_output(knots, scale, prompt):
    target = random_target(3)
    drafter = random_drafter(target)
    for parameter in drafter.model.parameters():
        parameter.data.mul_(scale)
    scores = IsotonicMap(knots, tuple(0.1 + 0.8 * i / len(knots) for i in range(len(knots))))
    calibration = ScoreCalibration("own", drafter.fingerprint, (scores,))
    for text in ("tree:total=16,top_k=4,depth=5,mlp_topk=4", "tree:total=5,top_k=6,depth=7,mlp_topk=3,pruning=2"):
        config = GenerationConfig(60, Structure.parse(text), calibration=calibration)
        made = generate(target, drafter, prompt, config)
        assert made.token_ids == plain(target, prompt, GenerationConfig(60)).token_ids


@pytest.mark.parametrize("temperature", [1e-30, 1e-40, 5e-324])
def test_the_coldest_temperatures_draw_and_record_as_any_other(temperature, target):
    text = [1, 2, 3, 1, 2, 3, 1, 2]
    for drafter in (NgramDrafter(target), random_drafter(target)):
        recorder = Recorder()
        settings = {"temperature": temperature, "candidates": "sampled"}
        config = GenerationConfig(30, Structure.parse("chain:6"), **settings)
        made = generate(target, drafter, text, config, recorder.prompt("a", None, 0))
        assert made.token_ids == plain(target, text, GenerationConfig(30)).token_ids
        assert recorder.trace({}).committed.sum() == 29


def test_a_tie_between_large_logits_of_half_precision_is_a_tie(prompt):
    """bfloat16 numbers near 388 are 2 apart."""
    target = random_target(1)
    target.model.to(torch.bfloat16)
    target.model.lm_head.weight.data.mul_(300)
    out = list(plain(target, prompt, GenerationConfig(8)).token_ids)
    logits = target.prefill([*prompt, *out[:5]]).logits[-1]
    size = float(logits.abs().max())
    verdicts = {}
    for token in logits.argsort(descending=True)[1:].tolist():
        result = compare(target, prompt, out, [*out[:5], token, *out[6:]])
        verdicts[abs(result.gap)] = result.verdict
        assert result.bound == pytest.approx(max(0.3, 2 * 2**-7 * size), rel=0.5)
    assert {verdict for gap, verdict in verdicts.items() if gap > 0.05 * size} == {"different"}


# ---- folders of strangers


@pytest.fixture
def folder(tmp_path):
    model_of("llama", vocab_size=280).save_pretrained(tmp_path / "t")
    train_tokenizer(["some text"], 270).save_pretrained(tmp_path / "t")
    return tmp_path / "t"


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "changes",
    [
        {"num_attention_heads": 3},
        {"hidden_size": "8"},
        {"num_attention_heads": 0},
        {"num_hidden_layers": -1},
        {"vocab_size": 99},
        {"model_type": "nothing_known"},
        {"num_hidden_layers": 10**9},
    ],
    ids=str,
)
def test_a_target_with_an_impossible_config_is_refused_by_name(changes, folder):
    edit(folder, **changes)
    with pytest.raises(InputError, match="target '"):
        load_target(str(folder))


@pytest.mark.filterwarnings("ignore")
def test_a_target_whose_weights_are_cut_off_or_lack_a_tensor_is_refused_by_name(folder):
    weights = folder / "model.safetensors"
    whole = load_file(weights)
    lacking = {k: v for k, v in whole.items() if "layers.1.self_attn.q_proj" not in k}
    save_file(lacking, weights, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"no tensor model\.layers\.1\.self_attn\.q_proj\.weight"):
        load_target(str(folder))
    save_file(whole, weights, metadata={"format": "pt"})
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(InputError, match="target '"):
        load_target(str(folder))


@pytest.mark.filterwarnings("ignore")
def test_code_that_a_folder_names_is_not_run_nor_asked_about(folder, tmp_path, monkeypatch, capsys):
    (folder / "cfg.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    edit(folder, model_type="custom_x", auto_map={"AutoConfig": "cfg.X", "AutoModelForCausalLM": "cfg.X"})
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked whether to run code"))
    with pytest.raises(InputError, match="target '"):
        load_target(str(folder))
    assert not (tmp_path / "ran").exists()
    assert capsys.readouterr().out == ""


def test_a_chat_template_that_fails_is_refused_by_name(target):
    class Broken(FakeTokenizer):
        def apply_chat_template(self, *_: object, **__: object) -> str:
            raise RuntimeError("roles must alternate")

    broken = Target(target.model, Broken("a template"), "broken")
    with pytest.raises(InputError, match="chat template.*roles must alternate"):
        encode(broken, Prompt("a", None, ("hello",), True), [])


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.float8_e4m3fn, torch.complex64])
def test_weights_of_a_kind_that_heads_are_not_stored_in_are_refused_by_tensor(dtype, target, tmp_path):
    random_drafter(target).model.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file(weights | {"fc.bias": torch.ones(32).to(dtype)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"tensor fc\.bias: found \w+, wanted float16"):
        load_drafter(str(tmp_path), target)


def test_weights_beyond_the_runs_dtype_are_refused_by_tensor(tmp_path):
    target = random_target()
    model = random_drafter(target).model
    model.fc.weight.data[0, 0] = 1e6
    model.save_pretrained(tmp_path)
    load_drafter(str(tmp_path), target)
    target.model.to(torch.float16)
    with pytest.raises(InputError, match=r"fc\.weight: found weights that float16 cannot hold"):
        load_drafter(str(tmp_path), target)


# ---- settings


@pytest.mark.parametrize("token", [-3, VOCAB, 10**20])
def test_a_stop_token_that_is_none_is_refused(token, target, prompt):
    with pytest.raises(InputError, match="stop_token_ids"):
        plain(target, prompt, GenerationConfig(4, stop_token_ids=(token,)))


def test_a_text_is_no_prompt(target):
    with pytest.raises(InputError, match=r"target\.encode"):
        plain(target, "a text", GenerationConfig(4))


@pytest.mark.parametrize("strings", ["x", ("",), (3,)])
def test_stop_strings_are_a_tuple_of_texts(strings):
    with pytest.raises(InputError, match="stop_strings"):
        GenerationConfig(4, stop_strings=strings)


def test_a_calibration_or_budget_for_what_it_does_not_change_is_refused():
    calibration = ScoreCalibration("own", "0" * 64, (IsotonicMap((0.0, 1.0), (0.0, 1.0)),))
    with pytest.raises(InputError, match="calibration"):
        GenerationConfig(4, Structure.parse("chain:3"), calibration=calibration)
