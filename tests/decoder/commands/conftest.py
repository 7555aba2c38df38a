"""A small random pair in folders, and `gumiho` run among them."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gumiho_decoder.commands.main import main
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel
from gumiho_decoder.target import load_target
from gumiho_decoder.tiny.making.stream import train_tokenizer
from gumiho_theory import ScoreCalibration, TemperatureMap


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    tokenizer = train_tokenizer(["def f(x):\n    return x\n"] * 5, 280)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder / "target")
    tokenizer.save_pretrained(folder / "target")
    target = load_target(str(folder / "target"))
    for name, changes in (("drafter", {}), ("wide", {"hidden_size": 64}), ("words", {"vocab_size": 99})):
        GumihoModel(GumihoConfig.for_target(target, **changes)).save_pretrained(folder / name)
    (folder / "prompts.jsonl").write_text('{"prompt": "def f("}\n{"prompt": "return", "task": "t"}\n')
    (folder / "long.jsonl").write_text(json.dumps({"prompt": "é" * 100}) + "\n")
    (folder / "empty.jsonl").write_text("")
    ScoreCalibration("other", "f" * 64, (TemperatureMap(2.0),)).write(folder / "foreign.json")
    return folder


@pytest.fixture
def call(pair, monkeypatch, capsys):
    """Run `gumiho` in the pair's folder; returns exit status, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(pair)
        monkeypatch.setattr("sys.argv", ["gumiho", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run
