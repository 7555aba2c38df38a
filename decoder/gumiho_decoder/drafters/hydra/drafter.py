"""Drafting with Hydra's heads: one position after another, each head reading the path drafted so far."""

from __future__ import annotations

import torch

from gumiho_decoder.drafters.eagle.drafter import of_parents
from gumiho_decoder.drafters.growing.cache import TreeCache
from gumiho_decoder.drafters.growing.heads import HeadsDrafter
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.target import Target


class HydraDrafter(HeadsDrafter):
    """Hydra heads on a target; with a prefix layer (Hydra++) its cache, which holds verified features only."""

    method = "hydra"

    def __init__(self, model: HydraModel, target: Target, name: str) -> None:
        super().__init__(model, target, name)
        self.depth = model.config.hydra_heads
        # Ungrounded heads are Medusa's: none waits for another.
        self.serial_steps = None if model.config.grounded else 1
        self._cache = TreeCache(self.model.prefix) if self.model.prefix else None
        self._tokens = self._root
        self._features = torch.empty(0)

    def start(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.start`."""
        if self._cache is not None:
            self._cache.clear()
        self.advance(tokens, features)

    def advance(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.advance`."""
        features = features.to(self.target.head_device)
        self._tokens, self._root = tokens, tokens[-1:]
        self._features = features if self._cache is None else self._cache.read(features)

    def branches(self, depth: int, roots: torch.Tensor | None = None) -> HydraBranches:
        """See `TreeDrafter.branches`."""
        if roots is None:
            return HydraBranches(self, self._features[-1:], self.root_token)
        return HydraBranches(self, self._features[roots - 1], self._tokens[roots])


class HydraBranches:
    """One head a level, reading each node's own path; see `Branches`."""

    def __init__(self, drafter: HydraDrafter, features: torch.Tensor, roots: torch.Tensor) -> None:
        self._model, self._target = drafter.model, drafter.target
        self._inputs = features[:, None]  # (B, nodes of the last call, width)
        self._roots = roots

    def root(self) -> torch.Tensor:
        """See `Branches.root`."""
        return self._read(0, self._roots[:, None], torch.zeros_like(self._roots)[:, None])[0]

    def deeper(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Branches.deeper`."""
        return self._read(depth, tokens, parents)

    def _read(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.zeros_like(tokens)
        if self._model.config.grounded:
            self._inputs = torch.cat([of_parents(self._inputs, parents), self._target.embed(tokens)], dim=-1)
            rows = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        return torch.log_softmax(self._model.heads[depth](self._inputs).float(), dim=-1), rows
