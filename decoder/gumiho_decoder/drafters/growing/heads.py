"""Drafters that are trained heads on a target's features: what EAGLE, Gumiho, Medusa and Hydra have in common."""

from __future__ import annotations

import torch
from torch import nn

from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.target import Target


class HeadsDrafter(TreeDrafter):
    """Heads placed beside the target's lm_head, in its dtype, frozen.

    Raises
    ------
    InputError
        Hidden size or vocabulary of heads and target differ.
    """

    def __init__(self, model: nn.Module, target: Target, name: str) -> None:
        target.check_fit(name, model.config.hidden_size, model.config.vocab_size)
        self.name = name
        self.config = model.config
        self.target = target
        self.model = placed(model, target.head_device, target.dtype).eval().requires_grad_(False)
        self._root = torch.empty(0, dtype=torch.int64)

    @property
    def root_token(self) -> torch.Tensor:
        """See `TreeDrafter.root_token`."""
        return self._root


def placed(model: nn.Module, device: torch.device, dtype: torch.dtype) -> nn.Module:
    """Move a model; weights become `dtype`, buffers stay as exact as they are: rotary angles grow with the position."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model.to(device)
