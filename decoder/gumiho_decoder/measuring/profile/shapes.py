"""Models with random weights in the shape of known ones: step times do not depend on what the weights say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gumiho_decoder.drafters.eagle.drafter import EagleDrafter, EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.files.own_format import CONFIG_BYTES
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.drafters.gumiho.drafter import GumihoDrafter
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel
from gumiho_decoder.drafters.hydra.drafter import HydraDrafter
from gumiho_decoder.drafters.hydra.model import HydraConfig, HydraModel
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.drafters.medusa import MedusaConfig, MedusaDrafter, MedusaModel
from gumiho_decoder.measuring.pair import load_pair
from gumiho_decoder.target import Target, check_device, load_target
from gumiho_theory import InputError
from gumiho_theory.files import read_json

# Bounds of what a config.json may ask for; the first seven make a shape.
_COUNTS = {
    "hidden_size": 65536,
    "intermediate_size": 1 << 20,
    "num_hidden_layers": 1024,
    "num_attention_heads": 1024,
    "num_key_value_heads": 1024,
    "vocab_size": 1 << 24,
    "max_position_embeddings": 1 << 30,
    "head_dim": 65536,
}
_SWITCHES = ("attention_bias", "mlp_bias", "tie_word_embeddings")
_OPTIONAL = ("num_key_value_heads", "head_dim", *_SWITCHES)


def _llama(*counts: int) -> dict[str, Any]:
    return dict(zip(_COUNTS, counts, strict=False))


SHAPES: dict[str, dict[str, Any]] = {
    "vicuna-7b": _llama(4096, 11008, 32, 32, 32, 32000, 4096),
    "llama2-13b": _llama(5120, 13824, 40, 40, 40, 32000, 4096),
    "llama3-8b": _llama(4096, 14336, 32, 32, 8, 128256, 8192) | {"rope_theta": 500000.0},
    "llama-68m": _llama(768, 3072, 2, 12, 12, 32000, 2048),
    "tiny-shape": _llama(64, 128, 2, 4, 2, 256, 512),
}
"""Arguments of a LlamaConfig, as published with the models."""

METHODS = {
    "gumiho": (GumihoConfig, GumihoModel, GumihoDrafter),
    "eagle": (SerialConfig, EagleModel, EagleDrafter),
    "medusa": (MedusaConfig, MedusaModel, MedusaDrafter),
    "hydra": (HydraConfig, HydraModel, HydraDrafter),
}
"""The methods that have weights: configuration, model, drafter."""


class NumberTokenizer:
    """Stands where a tokenizer has to be: a text's tokens are its bytes, tokens read as their numbers."""

    chat_template = None

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = vocabulary

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        """Return the text's tokens."""
        return {"input_ids": [byte % self._vocabulary for byte in text.encode()]}

    def decode(self, tokens, **_: object) -> str:
        """Return the tokens' numbers."""
        return " ".join(str(int(token)) for token in tokens)


def random_target(shape: str | Path, device: str = "cpu", dtype: str = "float32", **changes: int) -> Target:
    """Make a target with random weights, on the device and in its dtype from the start. It never ends an output.

    `shape`: A name in `SHAPES`, or the config.json of a LLaMA. Rotary embeddings are the plain ones, whatever it says
    of stretching them: that changes no time. `**changes`: Arguments of the LlamaConfig that differ from the shape's.
    Raises InputError: No such shape, a config.json of another kind or out of range (the field is named), or more
    weights than the device has memory.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    arguments = {**(SHAPES[str(shape)] if str(shape) in SHAPES else _read_shape(Path(shape))), **changes}
    theta = float(arguments.pop("rope_theta", 10000.0))
    config = LlamaConfig(
        **arguments,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        rms_norm_eps=1e-5,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    place = f"target random:{shape}"
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model = _filled(model, torch.device(device), getattr(torch, dtype), place)
    return Target(model, NumberTokenizer(config.vocab_size), f"random:{shape}")


def random_drafter(method: str, target: Target, **changes: int | float | bool) -> TreeDrafter:
    """Make a drafter with random weights for a target.

    `method`: `gumiho`, `eagle`, `medusa` or `hydra`. `**changes`: Fields of the method's configuration that differ from
    what fits the target best. Raises InputError: No such method, or more weights than the device has memory.
    """
    if method not in METHODS:
        raise InputError(f"drafter random:{method}", "no such method", ", ".join(METHODS))
    config_class, model_class, drafter_class = METHODS[method]
    place = f"drafter random:{method}"
    with torch.device("meta"):
        model = model_class(config_class.for_target(target, **changes))
    return drafter_class(_filled(model, target.head_device, target.dtype, place), target, f"random:{method}")


def load(target: str, drafter: str, dtype: str = "float32", device: str = "cpu") -> tuple[Target, TreeDrafter]:
    """Load a pair, of which either may be `random:` and a shape or a method; else as `load_pair` does.

    Raises InputError: Unknown dtype or device, nothing loadable, or a drafter that does not fit.
    """
    kind, _, shape = target.partition(":")
    method = drafter.removeprefix("random:") if drafter.startswith("random:") else None
    if kind != "random" and method is None:
        return load_pair(target, drafter, dtype, device)
    check_device(device, dtype)
    if device == "auto":
        raise InputError("--device", "'auto'", "one device: random weights are made where they stay")
    made = random_target(shape, device, dtype) if kind == "random" else load_target(target, device, dtype)
    return made, load_drafter(drafter, made) if method is None else random_drafter(method, made)


def _read_shape(path: Path) -> dict[str, Any]:
    """Read a LLaMA's config.json; only what shapes it."""
    data = read_json(path, CONFIG_BYTES)
    if data.get("model_type") != "llama":
        raise InputError(f"{path}, model_type", repr(data.get("model_type")), "'llama'")
    found = {name: data[name] for name in (*_COUNTS, *_SWITCHES) if data.get(name) is not None}
    for name, most in _COUNTS.items():
        value = found.get(name)
        if value is None and name in _OPTIONAL:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise InputError(f"{path}, {name}", repr(value), f"an integer from 1 to {most}")
    for name in _SWITCHES:
        if not isinstance(found.get(name, False), bool):
            raise InputError(f"{path}, {name}", repr(found[name]), "true or false")
    hidden, heads = found["hidden_size"], found["num_attention_heads"]
    if "head_dim" not in found and hidden % heads:
        raise InputError(f"{path}, num_attention_heads", heads, f"a divisor of {hidden}, or a head_dim")
    if heads % found.get("num_key_value_heads", heads):
        raise InputError(f"{path}, num_key_value_heads", found["num_key_value_heads"], f"a divisor of {heads}")
    if found.get("head_dim", hidden // heads) % 2:
        raise InputError(f"{path}, head_dim", found.get("head_dim", hidden // heads), "an even number")
    return found


def _filled(model: nn.Module, device: torch.device, dtype: torch.dtype, place: str) -> nn.Module:
    """Give a model without memory (on `meta`) random weights on a device; the same ones on every call."""
    model = model.to(dtype)
    needed, memory = sum(p.numel() for p in model.parameters()) * dtype.itemsize, _memory(device)
    if needed > memory:
        raise InputError(
            place, f"{needed / 2**30:.1f} GiB of weights", f"at most {memory / 2**30:.1f}, as {device} has"
        )
    model = model.to_empty(device=device)
    # Rotary angles are computed where a module is made, and never in the weights' dtype.
    for owner in list(model.modules()):
        for name, child in list(owner.named_children()):
            if hasattr(child, "inv_freq"):
                setattr(owner, name, type(child)(config=child.config).to(device))
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    random = torch.Generator(device).manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(std=weight.shape[-1] ** -0.5, generator=random)  # what goes in comes out as large
            else:
                weight.fill_(0.0 if name.endswith("bias") else 1.0)
    return model


def _memory(device: torch.device) -> float:
    """Return the bytes of memory that a device has (free, where it says so)."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type == "cpu" and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return float("inf")
