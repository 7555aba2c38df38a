"""The trained part of the Gumiho drafter: a serial Transformer, and parallel MLP heads behind it.

Li et al., "Gumiho: A Hybrid Architecture to Prioritize Early Tokens in Speculative Decoding" (ICML 2025), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from gumiho_decoder.drafters.eagle.serial import SerialConfig, SerialModel
from gumiho_decoder.drafters.files.own_format import OwnFormat


@dataclass(frozen=True)
class GumihoConfig(SerialConfig):
    """Shape of a Gumiho drafter; see `SerialConfig` for the rest.

    Attributes
    ----------
    serial_steps : int
        Early draft positions, one run of the Transformer each.
    serial_layers : int
        Layers of that Transformer.
    parallel_heads : int
        Later draft positions, one MLP head each, all run at once.
    head_blocks : int
        Residual blocks of a head.
    own_input : bool
        Whether the heads read tokens and features through an FC of their own; as published it is the Transformer's.
    """

    serial_layers: int = 2
    serial_steps: int = 2
    parallel_heads: int = 5
    head_blocks: int = 5
    own_input: bool = False

    BOUNDS: ClassVar[dict[str, tuple[int, int] | tuple[float, float]]] = SerialConfig.BOUNDS | {
        "serial_steps": (1, 64),
        "parallel_heads": (0, 64),
        "head_blocks": (0, 64),
    }

    @property
    def depth(self) -> int:
        """Draft positions in all."""
        return self.serial_steps + self.parallel_heads

    @property
    def window(self) -> int:
        """Serial inputs that a head reads: the last two, or the only one."""
        return min(2, self.serial_steps)


class ParallelHeads(nn.ModuleList):
    """P heads on the same input: Linear (window x H -> H) + SiLU, then blocks x + SiLU(Linear(x)).

    All weights start at zero, as released.
    """

    def __init__(self, config: GumihoConfig) -> None:
        hidden = config.hidden_size
        widths = [config.window * hidden, *[hidden] * config.head_blocks]
        super().__init__(
            nn.ModuleList(nn.Linear(width, hidden) for width in widths) for _ in range(config.parallel_heads)
        )
        for head in self:
            for linear in head:
                nn.init.zeros_(linear.weight)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Map (..., window x H) to (P, ..., H)."""
        outputs = []
        for enter, *blocks in self:
            x = nn.functional.silu(enter(inputs))
            for linear in blocks:
                x = x + nn.functional.silu(linear(x))
            outputs.append(x)
        return torch.stack(outputs)


class StackedHeads:
    """The same function as `ParallelHeads`, for drafting: one batched product a layer instead of P small ones."""

    def __init__(self, heads: ParallelHeads) -> None:
        layers = [[head[layer] for head in heads] for layer in range(len(heads[0]))]
        self._weights = [torch.stack([linear.weight.T for linear in layer]) for layer in layers]
        self._biases = [torch.stack([linear.bias for linear in layer])[:, None] for layer in layers]

    def __call__(self, inputs: torch.Tensor, heads: int) -> torch.Tensor:
        """Map (rows, window x H) to (heads, rows, H) with the first of the heads."""
        x = inputs.expand(heads, -1, -1)
        x = nn.functional.silu(torch.baddbmm(self._biases[0][:heads], x, self._weights[0][:heads]))
        for weight, bias in zip(self._weights[1:], self._biases[1:], strict=True):
            x = x + nn.functional.silu(torch.baddbmm(bias[:heads], x, weight[:heads]))
        return x


class GumihoModel(OwnFormat, SerialModel):
    """FC, serial Transformer, parallel heads. Embedding and lm_head stay the target's, frozen."""

    method = "gumiho"
    config_class = GumihoConfig

    def __init__(self, config: GumihoConfig) -> None:
        super().__init__(config)
        self.heads = ParallelHeads(config) if config.parallel_heads else None
        hidden = config.hidden_size
        own = config.own_input and config.parallel_heads
        self.head_fc = nn.Linear(2 * hidden, hidden, bias=config.fc_bias) if own else None

    def combine_for_heads(self, embedded: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Return what the parallel heads read where the Transformer reads `combine`: (..., H), (..., H) -> (..., H)."""
        if self.head_fc is None:
            return self.combine(embedded, features)
        return self.head_fc(torch.cat([embedded, features], dim=-1))
