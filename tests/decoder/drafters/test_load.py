"""The one place that loads drafters: every kind of name, what is refused, and a fingerprint that is the weights'."""

from __future__ import annotations

import hashlib
import re

import pytest
import torch

from fakes import random_target
from grown import started
from gumiho_decoder.drafters import load
from gumiho_decoder.drafters.eagle.drafter import EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.drafters.load import fingerprint, load_drafter
from gumiho_decoder.drafters.medusa import MedusaModel
from gumiho_decoder.target import load_target
from gumiho_theory import ChainStructure, InputError
from published import gumiho_state, write, write_layout

MODELS = {
    "gumiho": lambda target: GumihoModel(GumihoConfig.for_target(target)),
    "eagle": lambda target: EagleModel(SerialConfig.for_target(target, fc_bias=False)),
    "medusa": MedusaModel.new,
    "hydra": lambda target: HydraModel.new(target, prefix=True),
}


@pytest.fixture(scope="module")
def tiny():
    return load_target("tiny")


@torch.inference_mode()
def drafts(drafter, target, tokens=(5, 17, 3, 44)):
    started(drafter, target, list(tokens))
    return drafter.propose(ChainStructure(2))


@pytest.mark.parametrize("method", MODELS)
def test_a_folder_in_the_own_format_loads_by_its_method(method, target, tmp_path):
    torch.manual_seed(0)
    model = MODELS[method](target)
    model.save_pretrained(tmp_path)
    drafter = load_drafter(str(tmp_path), target)
    assert (drafter.method, drafter.name) == (method, str(tmp_path))
    assert drafter.fingerprint == fingerprint(model)
    assert drafts(drafter, target).n_nodes == 3


def test_the_embedded_drafter_loads(tiny):
    drafter = load_drafter("tiny:gumiho", tiny)
    assert (drafter.method, drafter.name, drafter.depth) == ("gumiho", "tiny:gumiho", 7)
    assert drafts(drafter, tiny).n_nodes == 3


def test_ngram_and_draft_model_load(tiny):
    ngram = load_drafter("ngram", tiny)
    assert (ngram.method, ngram.fingerprint) == ("ngram", hashlib.sha256(b"ngram").hexdigest())
    model = load_drafter("draft-model:tiny", tiny)
    assert (model.method, model.name) == ("draft-model", "draft-model:tiny")
    assert model.fingerprint == fingerprint(tiny.model)
    assert drafts(model, tiny).n_nodes == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tiny:medusae", "no such embedded drafter, wanted tiny:"),
        ("tiny:target", "no such embedded drafter"),
        ("tiny:", "no such embedded drafter"),
        ("tiny:../tiny/gumiho", "no such embedded drafter"),
        ("", "no name"),
        ("no-such-folder", "no such folder"),
        ("/no/such/folder", "no such folder"),
        ("a/b/c", "no such folder"),
        ("../a", "no such folder"),
        ("null\0byte/x", "no such folder"),
        ("draft-model:/no/such/model", "drafter 'draft-model:/no/such/model'"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_without_asking_the_hub(name, message, target, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *a, **k: pytest.fail("the hub was asked"))
    with pytest.raises(InputError, match=message):
        load_drafter(name, target)


def test_a_file_is_no_folder(target, tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match="found a file"):
        load_drafter(str(tmp_path / "x"), target)


def test_a_method_that_is_not_known_is_refused(target, tmp_path):
    (tmp_path / "config.json").write_text('{"method": "oracle"}')
    with pytest.raises(InputError, match=r"config.json, method: found 'oracle', wanted gumiho, eagle, medusa, hydra"):
        load_drafter(str(tmp_path), target)
    (tmp_path / "config.json").write_text('{"method": ["gumiho"]}')
    with pytest.raises(InputError, match="method: found"):
        load_drafter(str(tmp_path), target)


def test_the_hub_is_asked_for_the_few_files_of_a_drafter_only(target, tmp_path, monkeypatch):
    write_layout("medusa", tmp_path, target)
    asked = []

    def download(name, *, allow_patterns):
        asked.append((name, sorted(allow_patterns)))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    drafter = load_drafter("org/name-1.3", target)
    assert (drafter.method, drafter.name) == ("medusa", "org/name-1.3")
    assert [name for name, _ in asked] == ["org/name-1.3"]
    assert "config.json" in asked[0][1] and not any("*" in pattern for pattern in asked[0][1])


def test_whatever_the_hub_fails_with_is_bad_input_named(target, monkeypatch):
    def download(name, **_):
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(InputError, match="drafter 'org/name': found no such folder, and from the hub ConnectionError"):
        load_drafter("org/name", target)


def test_serial_steps_are_for_a_published_gumiho_checkpoint_only(target, tmp_path):
    write(tmp_path / "published", "pytorch_model.bin", gumiho_state(target))
    assert load_drafter(str(tmp_path / "published"), target, serial_steps=3).serial_steps == 3
    write_layout("medusa", tmp_path / "medusa", target)
    MODELS["gumiho"](target).save_pretrained(tmp_path / "own")
    for name in ("tiny:gumiho", "ngram", "draft-model:tiny", str(tmp_path / "medusa"), str(tmp_path / "own")):
        with pytest.raises(InputError, match="serial_steps: found 3, wanted nothing"):
            load_drafter(name, target, serial_steps=3)


@pytest.mark.parametrize("kind", [*MODELS, "draft-model"])
def test_the_fingerprint_does_not_depend_on_the_runs_dtype(kind, target, tiny, tmp_path, monkeypatch):
    if kind == "draft-model":
        half, name, full = load_target("tiny", dtype="bfloat16"), "draft-model:tiny", tiny
    else:
        torch.manual_seed(0)
        MODELS[kind](target).save_pretrained(tmp_path)
        half, name, full = random_target(), str(tmp_path), target
        half.model.to(torch.bfloat16)
    drafter = load_drafter(name, half)
    assert {parameter.dtype for parameter in drafter.model.parameters()} == {torch.bfloat16}
    assert drafter.fingerprint == load_drafter(name, full).fingerprint


def test_the_fingerprint_tells_names_dtypes_shapes_and_values_apart():
    def of(**tensors):
        module = torch.nn.Module()
        for name, tensor in tensors.items():
            module.register_buffer(name, tensor)
        return fingerprint(module)

    base = {"a": torch.zeros(2, 3), "b": torch.ones(())}
    others = [
        {"a": torch.zeros(3, 2), "b": torch.ones(())},
        {"a": torch.zeros(2, 3), "c": torch.ones(())},
        {"a": torch.zeros(2, 3), "b": torch.ones((), dtype=torch.int32)},
        {"a": torch.zeros(2, 3, dtype=torch.bfloat16), "b": torch.ones(())},
        {"a": torch.zeros(2, 3), "b": -torch.ones(())},
        {"a": -torch.zeros(2, 3), "b": torch.ones(())},
    ]
    assert len({of(**base), *(of(**other) for other in others)}) == 7
    assert of(**base) == of(**dict(reversed(base.items())))
    assert of(a=torch.arange(6.0).reshape(2, 3).T) == of(a=torch.arange(6.0).reshape(2, 3).T.contiguous())
    assert re.fullmatch("[0-9a-f]{64}", of(**base))


def test_every_method_has_one_name(target):
    assert {method: drafter.method for method, (_, drafter) in load._DRAFTERS.items()} == {
        name: name for name in MODELS
    }
