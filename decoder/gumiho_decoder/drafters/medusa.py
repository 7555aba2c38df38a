"""Drafting with Medusa's heads: later positions from the last feature alone, all at once.

Cai et al., "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads" (arXiv 2401.10774),
section 2.1. A head does not see the tokens drafted before its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.files.own_format import OwnFormat
from gumiho_decoder.drafters.growing.heads import HeadsDrafter
from gumiho_decoder.target import Target


@dataclass(frozen=True)
class MedusaConfig:
    """Shape of a Medusa drafter.

    Attributes
    ----------
    hidden_size, vocab_size : int
        As the target's.
    medusa_heads : int
        Draft positions, one head each.
    medusa_layers : int
        Residual blocks of a head.
    """

    hidden_size: int
    vocab_size: int
    medusa_heads: int = 5
    medusa_layers: int = 1

    BOUNDS: ClassVar[dict[str, tuple[int, int] | tuple[float, float]]] = {
        "hidden_size": SerialConfig.BOUNDS["hidden_size"],
        "vocab_size": SerialConfig.BOUNDS["vocab_size"],
        "medusa_heads": (1, 64),
        "medusa_layers": (0, 64),
    }

    @classmethod
    def for_target(cls, target: Target, **changes: int) -> MedusaConfig:
        """Return the configuration whose shapes are the target's."""
        return cls(**{"hidden_size": target.hidden_size, "vocab_size": target.vocab_size, **changes})


class HeadsLinear(nn.Module):
    """One Linear a head, their weights stacked: (K, rows, inputs) -> (K, rows, outputs) in one product.

    Starts at zero.
    """

    def __init__(self, heads: int, inputs: int, outputs: int, *, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(heads, outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(heads, outputs)) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Use the first of the heads, as many as `x` has."""
        weight = self.weight[: len(x)].transpose(1, 2)
        return torch.bmm(x, weight) if self.bias is None else torch.baddbmm(self.bias[: len(x), None], x, weight)


class MedusaModel(OwnFormat, nn.Module):
    """K heads: blocks x + SiLU(Linear(x)), then a vocabulary matrix of each head's own."""

    method = "medusa"
    config_class = MedusaConfig

    def __init__(self, config: MedusaConfig) -> None:
        super().__init__()
        heads, hidden = config.medusa_heads, config.hidden_size
        self.config = config
        self.blocks = nn.ModuleList(HeadsLinear(heads, hidden, hidden, bias=True) for _ in range(config.medusa_layers))
        self.vocabulary = HeadsLinear(heads, hidden, config.vocab_size, bias=False)

    @classmethod
    def new(cls, target: Target, **changes: int) -> MedusaModel:
        """Return heads to be trained: each starts as the target's lm_head."""
        model = cls(MedusaConfig.for_target(target, **changes))
        with torch.no_grad():
            model.vocabulary.weight.copy_(target.model.get_output_embeddings().weight)
        return model

    def forward(self, features: torch.Tensor, heads: int) -> torch.Tensor:
        """Map features (..., H) to the logits of the first `heads` heads, (heads, ..., V)."""
        x = features.reshape(1, -1, features.shape[-1]).expand(heads, -1, -1)
        for block in self.blocks:
            x = x + nn.functional.silu(block(x))
        return self.vocabulary(x).unflatten(1, features.shape[:-1])


class MedusaDrafter(HeadsDrafter):
    """Medusa heads on a target.

    The target's lm_head made the root from the feature before it; head i makes draft position i from the same feature.
    """

    method = "medusa"
    serial_steps = 1

    def __init__(self, model: MedusaModel, target: Target, name: str) -> None:
        super().__init__(model, target, name)
        self.depth = model.config.medusa_heads
        self._features = torch.empty(0)

    def start(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.start`."""
        self.advance(tokens, features)

    def advance(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.advance`."""
        self._root, self._features = tokens[-1:], features.to(self.target.head_device)

    def branches(self, depth: int, roots: torch.Tensor | None = None) -> MedusaBranches:
        """See `TreeDrafter.branches`."""
        return MedusaBranches(self.model, depth, self._features[-1:] if roots is None else self._features[roots - 1])


class MedusaBranches:
    """All heads at once; whatever was drafted, a position has one distribution. See `Branches`."""

    def __init__(self, model: MedusaModel, depth: int, features: torch.Tensor) -> None:
        self._model, self._depth, self._features = model, depth, features
        self._behind = torch.empty(0)

    def root(self) -> torch.Tensor:
        """See `Branches.root`."""
        logits = self._model(self._features[:, None], self._depth)
        self._behind = torch.log_softmax(logits.float(), dim=-1)  # (depth, B, 1, V)
        return self._behind[0]

    def deeper(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Branches.deeper`."""
        return self._behind[depth], torch.zeros_like(tokens)
