"""The trained part of EAGLE, and of Gumiho's early positions: FC and a small Transformer on the target's features.

Li et al., "EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty" (arXiv 2401.15077), section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from gumiho_theory import InputError


@dataclass(frozen=True)
class SerialConfig:
    """Shape of the serial part; the whole configuration of an EAGLE drafter.

    Attributes
    ----------
    hidden_size, intermediate_size, heads, key_value_heads, vocab_size, positions : int
        As the target's.
    rope_theta, norm_eps : float
        Base of the rotary embedding; epsilon of the norms.
    serial_layers : int
        Layers of the Transformer.
    fc_bias : bool
        Whether FC has a bias.
    """

    hidden_size: int
    intermediate_size: int
    heads: int
    key_value_heads: int
    vocab_size: int
    positions: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-6
    serial_layers: int = 1
    fc_bias: bool = True

    # What each field may be; floats where the bounds are floats. Wide enough for any model there is, narrow enough that
    # a stranger's file cannot ask for the machine's whole memory by its shape alone.
    BOUNDS: ClassVar[dict[str, tuple[int, int] | tuple[float, float]]] = {
        "hidden_size": (1, 65536),
        "intermediate_size": (1, 1 << 20),
        "heads": (1, 1024),
        "key_value_heads": (1, 1024),
        "vocab_size": (1, 1 << 24),
        "positions": (1, 1 << 30),
        "rope_theta": (1.0, 1e12),
        "norm_eps": (1e-20, 1.0),
        "serial_layers": (1, 64),
    }

    def __post_init__(self) -> None:
        for name, whole in (("heads", self.hidden_size), ("key_value_heads", self.heads)):
            if whole % getattr(self, name):
                raise InputError(name, getattr(self, name), f"a divisor of {whole}")
        if self.hidden_size // self.heads % 2:
            raise InputError("heads", self.heads, f"such that {self.hidden_size} / heads is even (rotary embedding)")

    @classmethod
    def for_target(cls, target, **changes):
        """Return the configuration whose shapes are the target's (a `Target`), as far as it has them."""
        config = target.config
        rope = getattr(config, "rope_parameters", None) or {}
        hidden, heads = target.hidden_size, config.num_attention_heads
        if hidden % heads or hidden // heads % 2:  # a head size of its own: take the largest count that divides
            heads = next((count for count in range(heads, 0, -1) if hidden % (2 * count) == 0), heads)
        groups = getattr(config, "num_key_value_heads", None) or heads
        shapes = dict(
            hidden_size=hidden,
            intermediate_size=_intermediate(config, hidden),
            heads=heads,
            key_value_heads=groups if heads % groups == 0 else heads,
            vocab_size=target.vocab_size,
            positions=target.positions,
            rope_theta=float(rope.get("rope_theta") or 10000.0),
            norm_eps=float(getattr(config, "rms_norm_eps", None) or 1e-6),
        )
        return cls(**{**shapes, **changes})


def _intermediate(config, hidden: int) -> int:
    """Return the width of the target's MLP, under whatever name it has."""
    for name in ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"):
        if isinstance(width := getattr(config, name, None), int):
            return width
    return 4 * hidden


def llama_layers(config, layers: int) -> nn.Module:
    """Return LLaMA layers of a configuration's shapes, and the final norm, reading hidden states instead of tokens."""
    from transformers import LlamaConfig, LlamaModel

    model = LlamaModel(
        LlamaConfig(
            vocab_size=1,
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_hidden_layers=layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.key_value_heads,
            max_position_embeddings=config.positions,
            rms_norm_eps=config.norm_eps,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=None,
        )
    )
    model.embed_tokens = None
    return model


class SerialModel(nn.Module):
    """FC and Transformer. Embedding and lm_head stay the target's, frozen."""

    def __init__(self, config: SerialConfig) -> None:
        super().__init__()
        self.config = config
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=config.fc_bias)
        self.serial = llama_layers(config, config.serial_layers)
        # As in EAGLE: the first layer has no input norm, and the output is a feature, not normed again.
        self.serial.norm = nn.Identity()
        self.serial.layers[0].input_layernorm = nn.Identity()

    def combine(self, embedded: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """FC of the next token's embedding and the feature before it: (..., H), (..., H) -> (..., H)."""
        return self.fc(torch.cat([embedded, features], dim=-1))
