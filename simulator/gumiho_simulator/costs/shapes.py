"""The shape of a LLaMA-like model: what decides how many bytes a step reads and how many operations it takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumiho_theory import InputError
from gumiho_theory.files import read_json

_CONFIG_BYTES = 1 << 20
_BOUNDS = {
    "hidden_size": 1 << 16,
    "intermediate_size": 1 << 20,
    "num_hidden_layers": 1 << 10,
    "num_attention_heads": 1 << 10,
    "num_key_value_heads": 1 << 10,
    "head_dim": 1 << 16,
    "vocab_size": 1 << 24,
}


@dataclass(frozen=True)
class ModelShape:
    """A decoder with gated MLPs and, where key_value_heads < heads, grouped-query attention.

    Parameters
    ----------
    name
        Of the model.
    hidden, layers, heads, key_value_heads, head_dim, intermediate, vocabulary
        Sizes.
    weight_bytes
        Bytes of a weight: 2 for 16 bits, 0.5 for 4.
    """

    name: str
    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    weight_bytes: float = 2.0

    def __post_init__(self) -> None:
        if not 0.1 <= self.weight_bytes <= 8:
            raise InputError("weight bytes", self.weight_bytes, "0.1 to 8")

    @property
    def layer_weights(self) -> int:
        """Weights of one layer's matrices."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.key_value_heads)
        return attention + 3 * self.hidden * self.intermediate

    @property
    def head_weights(self) -> int:
        """Weights of the vocabulary matrix."""
        return self.hidden * self.vocabulary

    @property
    def step_weights(self) -> int:
        """Weights that a step reads: all but the embedding, of which it looks up single rows."""
        return self.layers * self.layer_weights + self.head_weights


def _shape(name: str, hidden: int, intermediate: int, layers: int, heads: int, groups: int, vocab: int) -> ModelShape:
    return ModelShape(name, hidden, layers, heads, groups, hidden // heads, intermediate, vocab)


SHAPES = {
    one.name: one
    for one in (
        _shape("vicuna-7b", 4096, 11008, 32, 32, 32, 32000),
        _shape("vicuna-13b", 5120, 13824, 40, 40, 40, 32000),
        _shape("llama2-7b", 4096, 11008, 32, 32, 32, 32000),
        _shape("llama2-13b", 5120, 13824, 40, 40, 40, 32000),
        _shape("llama2-70b", 8192, 28672, 80, 64, 8, 32000),
        _shape("llama3-8b", 4096, 14336, 32, 32, 8, 128256),
        _shape("llama3-70b", 8192, 28672, 80, 64, 8, 128256),
        _shape("llama-68m", 768, 3072, 2, 12, 12, 32000),
    )
}
"""As in the config.json published with each model."""


def model_shape(text: str | os.PathLike[str], weight_bytes: float = 2.0) -> ModelShape:
    """Return a shape by name, or read it from a model's config.json.

    Parameters
    ----------
    text
        A key of `SHAPES`, or a file with hidden_size, num_hidden_layers, num_attention_heads, intermediate_size and
        vocab_size; num_key_value_heads and head_dim are optional, others ignored.
    weight_bytes
        Bytes of a weight.

    Returns
    -------
    ModelShape
        The shape.

    Raises
    ------
    InputError
        Neither a name nor a readable file, or a field that is missing or out of range.
    """
    known = SHAPES.get(str(text))
    if known is None:
        if Path(text).suffix.lower() != ".json":
            raise InputError("shape", repr(str(text)), f"one of {', '.join(SHAPES)}, or a config.json")
        try:
            known = _from_config(read_json(text, _CONFIG_BYTES), Path(text).resolve().parent.name or str(text))
        except InputError as error:
            raise error if error.place.startswith(str(text)) else error.within(text) from None
    return ModelShape(**{**vars(known), "weight_bytes": weight_bytes})


def _from_config(data: dict[str, Any], name: str) -> ModelShape:
    def size(key: str, default: int | None = None) -> int:
        value = data.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _BOUNDS[key]:
            raise InputError(key, repr(value), f"an integer from 1 to {_BOUNDS[key]}")
        return value

    hidden, heads = size("hidden_size"), size("num_attention_heads")
    groups = size("num_key_value_heads", heads)
    if heads % groups:
        raise InputError("num_key_value_heads", groups, f"a divisor of {heads}")
    if data.get("head_dim") is None and hidden % heads:
        raise InputError("num_attention_heads", heads, f"a divisor of {hidden}, or a head_dim")
    return ModelShape(
        name=name,
        hidden=hidden,
        layers=size("num_hidden_layers"),
        heads=heads,
        key_value_heads=groups,
        head_dim=size("head_dim", hidden // heads),
        intermediate=size("intermediate_size"),
        vocabulary=size("vocab_size"),
    )
