"""Published checkpoints in: folders of Gumiho, EAGLE, Medusa and Hydra heads, read as their authors upload them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gumiho_decoder.drafters.eagle.drafter import EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.files.own_format import CONFIG_BYTES, check_shapes, model_shapes
from gumiho_decoder.drafters.files.weights import Shape, Weights, open_weights
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel
from gumiho_decoder.drafters.hydra.model import HydraConfig, HydraModel
from gumiho_decoder.drafters.medusa import MedusaConfig, MedusaModel
from gumiho_decoder.target import Target
from gumiho_theory import InputError
from gumiho_theory.files import read_json

SERIAL_FILES = ("model.safetensors", "pytorch_model.bin")
MEDUSA_FILES = ("medusa_lm_head.safetensors", "medusa_lm_head.pt")
HYDRA_FILES = ("hydra_lm_head.safetensors", "hydra_lm_head.pt")
FILES = ("config.json", *SERIAL_FILES, *MEDUSA_FILES, *HYDRA_FILES)


def load_published(folder: Path, target: Target, name: str, serial_steps: int | None = None) -> nn.Module:
    """Read a published checkpoint; float32, on the CPU.

    `target`: What it was trained for: shapes and rotary settings that the files do not hold are the target's. `name`:
    Of the drafter, for messages. `serial_steps`: Serial positions of a Gumiho drafter, which its files do not tell: 2
    as published unless given. Raises InputError: No known layout, another target's shapes, or a tensor that is missing,
    not expected, misshapen or not finite: named with its file.
    """
    if weights := open_weights(folder, MEDUSA_FILES):
        return _medusa(weights, target)
    if weights := open_weights(folder, HYDRA_FILES):
        return _hydra(weights, folder / "config.json", target)
    if weights := open_weights(folder, SERIAL_FILES):
        return _serial(weights, folder / "config.json", target, name, serial_steps)
    raise InputError(f"drafter {name!r}", f"none of {', '.join(FILES[1:])} in the folder", "a drafter's folder")


def _filled(
    model_class: type[nn.Module],
    config: Any,
    weights: Weights,
    published: Callable[[str], str | list[str]],
    embeddings: tuple[str, ...] = (),
) -> Any:
    """Make a model and read its tensors.

    `published`: From a tensor's name in the model to its name in the file; a list where the model stacks several.
    `embeddings`: Names under which the file may hold the target's frozen embedding, which is not read.
    """
    wanted: dict[str, Shape] = {}
    for name, shape in model_shapes(model_class, config).items():
        source = published(name)
        wanted |= {source: shape} if isinstance(source, str) else dict.fromkeys(source, shape[1:])
    # Older versions of transformers saved this buffer, which follows from the configuration.
    found = {name: shape for name, shape in weights.shapes.items() if not name.endswith("rotary_emb.inv_freq")}
    wanted |= {name: (config.vocab_size, config.hidden_size) for name in embeddings if name in found}
    check_shapes(str(weights.path), found, wanted)
    model = model_class(config)
    for name, tensor in model.state_dict().items():
        source = published(name)
        if isinstance(source, str):
            tensor.copy_(weights.read(source))
        else:
            for row, part in zip(tensor, source, strict=False):
                row.copy_(weights.read(part))
    return model


def _checked(place: Path, config_class: type, **values: float | bool) -> Any:
    """Make a configuration of numbers that a file, or the names in it, told."""
    for field, (low, high) in config_class.BOUNDS.items():
        if field in values and not low <= values[field] <= high:
            raise InputError(f"{place}, {field}", values[field], f"a number from {low} to {high}")
    try:
        return config_class(**values)
    except InputError as error:
        raise error.within(place) from None


def _count(shapes: dict[str, Shape], pattern: str) -> int:
    """Return 1 + the largest number that the names have at the pattern's group; 0 where no name matches."""
    found = [match for name in shapes if (match := re.match(pattern, name))]
    return max((int(match[1]) + 1 for match in found), default=0)


def _medusa(weights: Weights, target: Target) -> MedusaModel:
    # config.json is not read: uploaded ones have another number of heads than the file beside them.
    layers = _count(weights.shapes, r"0\.([0-9]{1,4})\.linear\.")
    heads = _count(weights.shapes, r"([0-9]{1,4})\.")
    # Files of the version that trains residual blocks only read all heads through the target's lm_head.
    own = any(re.fullmatch(r"[0-9]+\.[0-9]+\.weight", name) for name in weights.shapes)
    shapes = {"hidden_size": target.hidden_size, "vocab_size": target.vocab_size}
    config = _checked(weights.path, MedusaConfig, **shapes, medusa_heads=heads, medusa_layers=layers)

    def published(name: str) -> list[str]:
        if name == "vocabulary.weight":
            return [f"{head}.{layers}.weight" for head in range(heads)] if own else []
        _, layer, kind = name.split(".")
        return [f"{head}.{layer}.linear.{kind}" for head in range(heads)]

    model = _filled(MedusaModel, config, weights, published)
    if not own:
        with torch.no_grad():
            model.vocabulary.weight.copy_(target.model.get_output_embeddings().weight)
    return model


def _hydra(weights: Weights, path: Path, target: Target) -> HydraModel:
    record = read_json(path, CONFIG_BYTES)
    architecture, grounded = record.get("hydra_head_arch", "mlp"), record.get("grounded_heads", False)
    if architecture not in ("mlp", "prefix-mlp"):
        raise InputError(f"{path}, hydra_head_arch", repr(architecture), "'mlp' or 'prefix-mlp'")
    if not isinstance(grounded, bool):
        raise InputError(f"{path}, grounded_heads", repr(grounded), "true or false")
    if record.get("hidden_state_offset", 0) != 0:
        raise InputError(f"{path}, hidden_state_offset", repr(record["hidden_state_offset"]), "0, the last features")
    prefix = architecture == "prefix-mlp"
    if prefix:
        _plain_rotary(f"target {target.name!r}, rope", getattr(target.config, "rope_parameters", None))
    config = HydraConfig.for_target(
        target,
        prefix=prefix,
        grounded=grounded,
        hydra_heads=_number(path, record, "hydra_num_heads", "hydra_heads", 4),
        hydra_layers=_number(path, record, "hydra_num_layers", "hydra_layers", 1),
    )

    def published(name: str) -> str:
        kind, rest = name.split(".", 1)
        if kind == "prefix":
            return f"prefix_embeding_layer.{rest}"
        head, rest = rest.split(".", 1)
        if rest.startswith("vocabulary."):  # behind a dropout layer in prefix-mlp, as the blocks are
            return rest.replace("vocabulary", f"hydra_lm_head.{head}.1" if prefix else f"hydra_lm_head.{head}")
        _, block, part, kind = rest.split(".")
        place = 2 * int(block) + 1 if prefix else block
        return f"hydra_mlp.{head}.{place}.{part.replace('skip', 'res_connection')}.{kind}"

    embeddings = ("input_embed_fn.weight", "prefix_embeding_layer.embed_tokens.weight")
    return _filled(HydraModel, config, weights, published, embeddings)


def _serial(weights: Weights, path: Path, target: Target, name: str, serial_steps: int | None) -> nn.Module:
    shapes = weights.shapes
    if any(key.startswith("midlayer.") for key in shapes):
        raise InputError(str(weights.path), "an EAGLE-3 checkpoint", "EAGLE or EAGLE-2")
    if "fc.weight" not in shapes:
        first = min(shapes, default="none at all")
        wanted = "a Gumiho or EAGLE checkpoint (a whole model drafts as draft-model:FOLDER)"
        raise InputError(str(weights.path), f"no tensor fc.weight, but {first}", wanted)
    if path.is_file():
        values = _configured(path, target, "fc.bias" in shapes)
        target.check_fit(name, values["hidden_size"], values["vocab_size"])
    else:
        values = _counted(shapes, target)
    values["positions"] = target.positions  # rotary embeddings need no bound, and the published one is the training's

    prefix = "mlp.mlp." if any(key.startswith("mlp.mlp.") for key in shapes) else "mlp."
    heads = _count(shapes, rf"{re.escape(prefix)}([0-9]{{1,4}})\.")
    if not heads:
        config = _checked(weights.path, SerialConfig, **values)
        return _filled(EagleModel, config, weights, lambda key: key.removeprefix("serial."), ("embed_tokens.weight",))

    if serial_steps is None:  # a head reads the inputs of the last two serial tokens, or of the only one
        serial_steps = 1 if shapes.get(f"{prefix}0.0.linear.weight", ())[1:] == (target.hidden_size,) else 2
    values |= {
        "serial_steps": serial_steps,
        "parallel_heads": heads,
        "head_blocks": _count(shapes, rf"{re.escape(prefix)}0\.([0-9]{{1,4}})\.") - 1,
    }
    config = _checked(weights.path, GumihoConfig, **values)

    def published(key: str) -> str:
        kind, rest = key.split(".", 1)
        if kind == "heads":
            head, block, part = rest.split(".")
            return f"{prefix}{head}.{block}.linear.{part}"
        return key.removeprefix("serial.")

    return _filled(GumihoModel, config, weights, published, ("embed_tokens.weight",))


def _counted(shapes: dict[str, Shape], target: Target) -> dict[str, Any]:
    """Return the serial part's fields where there is no config.json: from the tensors and the target."""
    values = dict(vars(SerialConfig.for_target(target)))
    size = values["hidden_size"] // values["heads"]
    if width := shapes.get("layers.0.mlp.gate_proj.weight", ()):
        values["intermediate_size"] = width[0]
    if width := shapes.get("layers.0.self_attn.k_proj.weight", ()):
        values["key_value_heads"] = width[0] // size
    layers = _count(shapes, r"layers\.([0-9]{1,4})\.")
    return values | {"serial_layers": layers, "fc_bias": "fc.bias" in shapes}


def _configured(path: Path, target: Target, bias: bool) -> dict[str, Any]:
    """Return the serial part's fields from a LLaMA-like config.json; what it leaves out is as in the authors' code."""
    record = read_json(path, CONFIG_BYTES)
    for key in ("rope_scaling", "rope_parameters"):
        _plain_rotary(f"{path}, {key}", record.get(key))
    rope = record.get("rope_parameters")
    if isinstance(rope, dict) and "rope_theta" in rope:  # where newer configs say it
        record = {"rope_theta": rope["rope_theta"]} | record
    for key, wanted in (("hidden_act", ("silu",)), ("bias", (True, False))):
        if key in record and record[key] not in wanted:
            raise InputError(f"{path}, {key}", repr(record[key]), " or ".join(map(repr, wanted)))
    values = {field: _number(path, record, key, field, default) for field, (key, default) in _LLAMA.items()}
    groups = _number(path, record, "num_key_value_heads", "key_value_heads", values["heads"])
    size = _number(path, record, "head_dim", "hidden_size", values["hidden_size"] // values["heads"])
    if size != values["hidden_size"] // values["heads"]:
        raise InputError(f"{path}, head_dim", size, f"hidden_size / heads = {values['hidden_size'] // values['heads']}")
    return values | {"key_value_heads": groups, "fc_bias": bool(record.get("bias", bias))}


# The serial part's fields in a LLaMA-like config.json, and what the authors' code takes where one is left out.
_LLAMA = {
    "hidden_size": ("hidden_size", None),
    "intermediate_size": ("intermediate_size", None),
    "heads": ("num_attention_heads", None),
    "vocab_size": ("vocab_size", None),
    "rope_theta": ("rope_theta", 10000.0),
    "norm_eps": ("rms_norm_eps", 1e-6),
    "serial_layers": ("num_hidden_layers", None),
}
_BOUNDS = SerialConfig.BOUNDS | HydraConfig.BOUNDS


def _number(path: Path, record: dict[str, Any], key: str, field: str, default: float | None) -> Any:
    """Return what a config.json has at `key`, within the bounds of our field."""
    value = default if record.get(key) is None else record[key]
    low, high = _BOUNDS[field]
    kinds = (int, float) if isinstance(low, float) else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        raise InputError(f"{path}, {key}", repr(value), f"a number from {low} to {high}")
    return float(value) if isinstance(low, float) else value


def _plain_rotary(place: str, rope: object) -> None:
    """Refuse rotary embeddings that the heads' Transformer would not reproduce."""
    kind = rope.get("rope_type", rope.get("type")) if isinstance(rope, dict) else rope
    if kind not in (None, "default"):
        raise InputError(place, repr(kind), "plain rotary embeddings")
