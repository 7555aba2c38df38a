"""Published checkpoints: they draft what their papers' formulas give, and a broken file is named, never run."""

from __future__ import annotations

import json
import zipfile
from functools import partial

import pytest
import torch

from fakes import random_target
from grown import check_behind, check_chain, check_roots, started, structures
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.drafters.published import load_published
from gumiho_theory import ChainStructure, InputError
from published import (
    EPS,
    HIDDEN,
    LAYOUTS,
    THETA,
    eagle_config,
    gumiho_state,
    hydra_config,
    hydra_state,
    medusa_state,
    serial_state,
    write,
    write_layout,
)
from published_formulas import Formulas

# Layout -> method, depth, serial steps, further arguments of the formula.
EXPECTED = {
    "gumiho": ("gumiho", 4, 2, {"steps": 2}),
    "gumiho-wrapped": ("gumiho", 4, 2, {"steps": 2, "spelling": "mlp.mlp."}),
    "gumiho-safetensors": ("gumiho", 4, 2, {"steps": 2}),
    "gumiho-one-step": ("gumiho", 3, 1, {"steps": 1}),
    "eagle": ("eagle", None, None, {}),
    "eagle-no-bias": ("eagle", None, None, {}),
    "medusa": ("medusa", 3, 1, {}),
    "medusa-deep": ("medusa", 3, 1, {}),
    "medusa-shared": ("medusa", 3, 1, {}),
    "hydra": ("hydra", 3, None, {}),
    "hydra++": ("hydra", 3, None, {}),
    "hydra-ungrounded": ("hydra", 3, 1, {}),
}


@pytest.fixture(scope="module")
def target():
    """Rotary base and norm that only the target tells: its own layers were made before, and stay as they are."""
    target = random_target(spread=0.3)
    target.config.rope_parameters = {"rope_type": "default", "rope_theta": 300.0}
    target.config.rms_norm_eps = 0.01
    return target


@pytest.mark.parametrize("layout", LAYOUTS)
@torch.inference_mode()
def test_a_published_checkpoint_drafts_what_the_formulas_give(layout, target, tmp_path):
    _, state = write_layout(layout, tmp_path, target)
    method, depth, serial, arguments = EXPECTED[layout]
    drafter = load_drafter(str(tmp_path), target)
    assert (drafter.method, drafter.depth, drafter.serial_steps) == (method, depth, serial)
    theta, eps = (THETA, EPS) if method == "eagle" else (300.0, 0.01)
    behind = partial(getattr(Formulas(state, target, theta, eps), method), **arguments)
    for structure in structures(depth or 4):
        features = started(drafter, target)
        draft = drafter.propose(structure)
        check_behind(draft, structure.depth, features, behind)
        if isinstance(structure, ChainStructure):
            check_chain(draft, features, behind)


@pytest.mark.parametrize("layout", ["gumiho", "eagle", "hydra++", "medusa"])
@torch.inference_mode()
def test_many_roots_at_once_equal_each_prefix_alone(layout, target, tmp_path):
    write_layout(layout, tmp_path, target)
    drafter = load_drafter(str(tmp_path), target)
    check_roots(drafter, structures(3)[2], started(drafter, target))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_missing_extra_misshapen_or_infinite_tensor_is_named_with_its_file(layout, target, tmp_path):
    _, state = write_layout(layout, tmp_path, target)
    file, _, config = LAYOUTS[layout](target)
    # Not the embedding and the rotary buffer, which are not read; nor FC's bias, which some have and some have not.
    names = sorted(name for name in state if not any(part in name for part in ("embed", "inv_freq", "fc.")))
    for name in (names[0], names[len(names) // 2], names[-1]):
        shape = state[name].shape
        for broken, message in (
            ({k: v for k, v in state.items() if k != name}, "found nothing"),
            (state | {name: torch.zeros(*shape[:-1], shape[-1] + 1)}, f"wanted ({', '.join(map(str, shape))}"),
            (state | {name: torch.full(shape, torch.nan)}, "found nan or infinity"),
            (state | {name: torch.zeros(shape, dtype=torch.int64)}, "found torch.int64"),
        ):
            write(tmp_path, file, broken, config)
            with pytest.raises(InputError) as caught:
                load_published(tmp_path, target, "x")
            assert file in str(caught.value) and f"tensor {name}" in str(caught.value) and message in str(caught.value)
    write(tmp_path, file, state | {"zzz.stranger": torch.zeros(2)}, config)
    with pytest.raises(InputError, match=rf"{file}, tensor zzz.stranger: found \(2,\), wanted no such tensor"):
        load_published(tmp_path, target, "x")


@pytest.mark.parametrize("layout", ["gumiho", "eagle", "hydra", "hydra++"])
def test_the_targets_embedding_is_not_needed_but_never_of_another_shape(layout, target, tmp_path):
    path, state = write_layout(layout, tmp_path, target)
    embeddings = [name for name in state if "embed_tokens" in name or "embed_fn" in name]
    torch.save({name: tensor for name, tensor in state.items() if name not in embeddings}, path)
    load_published(tmp_path, target, "x")
    for name in embeddings:
        torch.save(state | {name: torch.zeros(99, HIDDEN)}, path)
        with pytest.raises(InputError, match=rf"tensor {name}: found \(99, 32\), wanted \(61, 32\)"):
            load_published(tmp_path, target, "x")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_another_targets_checkpoint_is_refused(layout, target, tmp_path):
    write_layout(layout, tmp_path, target)
    other = random_target()
    other.model.lm_head = torch.nn.Linear(64, 61, bias=False)
    with pytest.raises(InputError, match="found"):
        load_published(tmp_path, other, "x")


def test_the_number_of_medusa_heads_is_the_files_not_the_configs(target, tmp_path):
    write(tmp_path, "medusa_lm_head.pt", medusa_state(target, heads=5), {"medusa_num_heads": 2})
    assert load_published(tmp_path, target, "x").config.medusa_heads == 5


def test_serial_steps_of_gumiho_are_two_unless_said(target, tmp_path):
    write(tmp_path, "pytorch_model.bin", gumiho_state(target))
    assert load_published(tmp_path, target, "x").config.serial_steps == 2
    assert load_published(tmp_path, target, "x", serial_steps=3).config.serial_steps == 3
    with pytest.raises(InputError, match="serial_steps: found 0"):
        load_published(tmp_path, target, "x", serial_steps=0)
    with pytest.raises(InputError, match=r"tensor mlp.0.0.linear.weight: found \(32, 64\), wanted \(32, 32\)"):
        load_published(tmp_path, target, "x", serial_steps=1)


def test_safetensors_is_preferred_where_both_are(target, tmp_path):
    write(tmp_path, "model.safetensors", gumiho_state(target))
    (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
    load_published(tmp_path, target, "x")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", None),
        ("hidden_size", "32"),
        ("hidden_size", 10**30),
        ("num_attention_heads", 0),
        ("num_attention_heads", True),
        ("num_hidden_layers", 10**6),
        ("vocab_size", -1),
        ("rms_norm_eps", 0),
        ("rope_theta", "big"),
        ("rope_scaling", {"type": "linear", "factor": 2.0}),
        ("rope_scaling", {"rope_type": "llama3"}),
        ("hidden_act", "gelu"),
        ("bias", "no"),
    ],
)
def test_an_eagle_config_that_cannot_be_followed_is_refused_by_field(key, value, target, tmp_path):
    config = eagle_config(target, **{key: value})
    write(tmp_path, "pytorch_model.bin", serial_state(target, layers=1, bias=True), config)
    with pytest.raises(InputError, match=rf"config\.json, {key}: found"):
        load_published(tmp_path, target, "x")


def test_what_an_eagle_config_leaves_out_is_as_in_its_authors_code(target, tmp_path):
    config = eagle_config(target)
    for key in ("rope_theta", "rms_norm_eps", "rope_scaling", "hidden_act"):
        del config[key]
    write(tmp_path, "pytorch_model.bin", serial_state(target, layers=1, bias=True), config)
    found = load_published(tmp_path, target, "x").config
    assert (found.rope_theta, found.norm_eps, found.fc_bias) == (10000.0, 1e-6, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hydra_head_arch", "cross-attn"),
        ("hydra_head_arch", "eagle-attn"),
        ("grounded_heads", "yes"),
        ("hidden_state_offset", 1),
        ("hydra_num_heads", 65),
        ("hydra_num_layers", 0),
    ],
)
def test_a_hydra_config_that_cannot_be_followed_is_refused_by_field(key, value, target, tmp_path):
    config = hydra_config(prefix=False) | {key: value}
    write(tmp_path, "hydra_lm_head.pt", hydra_state(target, prefix=False), config)
    with pytest.raises(InputError, match=rf"config\.json, {key}: found"):
        load_published(tmp_path, target, "x")


def test_a_prefix_layer_with_scaled_rotary_embeddings_is_refused(tmp_path):
    scaled = random_target()
    scaled.config.rope_parameters = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    write(tmp_path, "hydra_lm_head.pt", hydra_state(scaled, prefix=True), hydra_config(prefix=True))
    with pytest.raises(InputError, match="target 'random', rope: found 'linear'"):
        load_published(tmp_path, scaled, "x")


def test_other_checkpoints_are_named_for_what_they_are(target, tmp_path):
    serial = serial_state(target, layers=1, bias=True)
    for state, message in (
        (serial | {"midlayer.hidden_norm.weight": torch.zeros(HIDDEN)}, "found an EAGLE-3 checkpoint"),
        (serial | {"layers.0.self_attn.q_proj.bias": torch.zeros(HIDDEN)}, "q_proj.bias: found"),
        (
            {"model.embed_tokens.weight": torch.zeros(61, HIDDEN)},
            "but model.embed_tokens.weight, wanted .*draft-model:",
        ),
        ({}, "none at all"),
    ):
        write(tmp_path, "pytorch_model.bin", state, eagle_config(target))
        with pytest.raises(InputError, match=message):
            load_published(tmp_path, target, "x")
    with pytest.raises(InputError, match="none of model.safetensors"):
        load_published(tmp_path.parent / "nothing", target, "x")


@pytest.mark.parametrize(
    ("file", "name", "message"),
    [
        ("medusa_lm_head.pt", "9999.0.linear.weight", "medusa_heads: found 10000, wanted a number from 1 to 64"),
        ("pytorch_model.bin", "mlp.9999.0.linear.weight", "parallel_heads: found 10000"),
        ("pytorch_model.bin", "mlp.0.9999.linear.weight", "head_blocks: found 9999"),
        ("pytorch_model.bin", "layers.9999.mlp.up_proj.weight", "serial_layers: found 10000"),
        ("medusa_lm_head.pt", f"{10**20}.0.linear.weight", f"tensor {10**20}.0.linear.weight: found"),
    ],
)
def test_numbers_in_names_make_no_model_without_bound(file, name, message, target, tmp_path):
    state = medusa_state(target) if file.startswith("medusa") else gumiho_state(target)
    write(tmp_path, file, state | {name: torch.zeros(1)})
    with pytest.raises(InputError, match=message):
        load_published(tmp_path, target, "x")


class Bomb:
    """Makes a file when it is unpickled in the ordinary way."""

    def __init__(self, marker) -> None:
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


def test_a_pickle_never_runs_what_it_holds(target, tmp_path):
    marker = tmp_path / "marker"
    write(tmp_path, "pytorch_model.bin", gumiho_state(target) | {"extra": Bomb(marker)})
    with pytest.raises(InputError, match="pytorch_model.bin"):
        load_published(tmp_path, target, "x")
    assert not marker.exists()
    torch.load(tmp_path / "pytorch_model.bin", weights_only=False)["extra"].close()
    assert marker.exists()


def test_damaged_and_disguised_files_are_refused_by_name(target, tmp_path):
    path = write(tmp_path, "pytorch_model.bin", gumiho_state(target)) / "pytorch_model.bin"
    whole = path.read_bytes()
    torch.save(gumiho_state(target), tmp_path / "old", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(tmp_path / "small", "w", zipfile.ZIP_DEFLATED) as small:
        for entry in archive.infolist():
            small.writestr(entry.filename, archive.read(entry))
    torch.save([torch.zeros(2)], tmp_path / "list")
    torch.save({"fc.weight": 3}, tmp_path / "number")
    torch.save({"fc.weight": torch.zeros(2, 2).to_sparse()}, tmp_path / "sparse")
    torch.save({"fc.weight": torch.zeros(2, 2, device="meta")}, tmp_path / "meta")
    # A single number that claims to be a matrix of 4 exabytes.
    torch.save(gumiho_state(target) | {"fc.weight": torch.zeros(1).expand(10**9, 10**9)}, tmp_path / "huge")
    damaged = [whole[: len(whole) // 2], whole[:10], b"", b"\x80\x04.", b"PK\x03\x04"]
    for data in (*damaged, *((tmp_path / name).read_bytes() for name in ("old", "list", "number"))):
        path.write_bytes(data)
        with pytest.raises(InputError, match="pytorch_model.bin"):
            load_published(tmp_path, target, "x")
    for name, place in (("small", ": found .* compressed"), ("sparse", ", tensor fc"), ("meta", ", tensor fc")):
        path.write_bytes((tmp_path / name).read_bytes())
        with pytest.raises(InputError, match=f"pytorch_model.bin{place}"):
            load_published(tmp_path, target, "x")
    path.write_bytes((tmp_path / "huge").read_bytes())
    with pytest.raises(InputError, match=r"tensor fc.weight: found \(1000000000, 1000000000\), wanted \(32, 64\)"):
        load_published(tmp_path, target, "x")
    path.unlink()
    for data in (b"", b"\xff" * 40, (2**60).to_bytes(8, "little") + b"{}", json.dumps({"a": 1}).encode()):
        (tmp_path / "model.safetensors").write_bytes(data)
        with pytest.raises(InputError, match="model.safetensors"):
            load_published(tmp_path, target, "x")
