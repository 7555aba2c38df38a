"""The trained part of Hydra: one head a draft position, each reading all tokens drafted before its own.

Ankner et al., "Hydra: Sequentially-Dependent Draft Heads for Medusa Decoding" (arXiv 2402.05109).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from gumiho_decoder.drafters.eagle.serial import SerialConfig, llama_layers
from gumiho_decoder.drafters.files.own_format import OwnFormat
from gumiho_decoder.target import Target

_SHARED = (
    *("hidden_size", "vocab_size"),
    *("intermediate_size", "heads", "key_value_heads", "positions", "rope_theta", "norm_eps"),
)


@dataclass(frozen=True)
class HydraConfig:
    """Shape of a Hydra drafter.

    Attributes
    ----------
    hidden_size, vocab_size : int
        As the target's.
    intermediate_size, heads, key_value_heads, positions, rope_theta, norm_eps
        Of the prefix layer; see `SerialConfig`.
    hydra_heads : int
        Draft positions, one head each.
    hydra_layers : int
        Blocks of a head.
    prefix : bool
        Whether features go through one Transformer layer before the heads read them (Hydra++).
    grounded : bool
        Whether heads read the tokens before their own, or the feature alone.
    """

    hidden_size: int
    vocab_size: int
    intermediate_size: int
    heads: int
    key_value_heads: int
    positions: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-6
    hydra_heads: int = 4
    hydra_layers: int = 1
    prefix: bool = False
    grounded: bool = True

    BOUNDS: ClassVar[dict[str, tuple[int, int] | tuple[float, float]]] = {
        **{name: SerialConfig.BOUNDS[name] for name in _SHARED},
        "hydra_heads": (1, 64),
        "hydra_layers": (1, 64),
    }

    def __post_init__(self) -> None:
        SerialConfig(**{name: getattr(self, name) for name in _SHARED})  # refuses what attention cannot be

    @classmethod
    def for_target(cls, target: Target, **changes: int | float | bool) -> HydraConfig:
        """Return the configuration whose shapes are the target's, as far as it has them."""
        like = SerialConfig.for_target(target)
        shapes = {name: getattr(like, name) for name in _SHARED}
        return cls(**{**shapes, **changes})


class HydraBlock(nn.Module):
    """x + SiLU(Linear(x)), this Linear starting at zero; where the width changes, a second Linear of x stands for x."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        nn.init.zeros_(self.linear.weight)
        self.skip = nn.Identity() if inputs == outputs else nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (..., inputs) to (..., outputs)."""
        return self.skip(x) + nn.functional.silu(self.linear(x))


class HydraHead(nn.Module):
    """Blocks and a vocabulary matrix of its own: (..., inputs) to logits, (..., V)."""

    def __init__(self, config: HydraConfig, inputs: int) -> None:
        super().__init__()
        hidden = config.hidden_size
        widths = [inputs, *[hidden] * (config.hydra_layers - 1)]
        self.blocks = nn.Sequential(*(HydraBlock(width, hidden) for width in widths))
        self.vocabulary = nn.Linear(hidden, config.vocab_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.vocabulary(self.blocks(x))


class HydraModel(OwnFormat, nn.Module):
    """Heads, and the prefix layer of Hydra++. The embedding stays the target's, frozen.

    Head i (0-based) reads the feature before the root and, if grounded, the embeddings of the root and of the i tokens
    drafted behind it.
    """

    method = "hydra"
    config_class = HydraConfig

    def __init__(self, config: HydraConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.hidden_size
        self.prefix = llama_layers(config, 1) if config.prefix else None
        self.heads = nn.ModuleList(
            HydraHead(config, (2 + i) * hidden if config.grounded else hidden) for i in range(config.hydra_heads)
        )

    @classmethod
    def new(cls, target: Target, **changes: int | float | bool) -> HydraModel:
        """Return heads to be trained: their vocabulary matrices start as the target's lm_head."""
        model = cls(HydraConfig.for_target(target, **changes))
        with torch.no_grad():
            for head in model.heads:
                head.vocabulary.weight.copy_(target.model.get_output_embeddings().weight)
                head.vocabulary.bias.zero_()
        return model

    def condition(self, features: torch.Tensor) -> torch.Tensor:
        """Return what heads read of whole sequences' features, (B, n, H) -> (B, n, H), without a cache."""
        if self.prefix is None:
            return features
        return self.prefix(inputs_embeds=features, use_cache=False).last_hidden_state
