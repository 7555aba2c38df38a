"""Drafting with EAGLE's head: one feature and token after another. Chain, static tree (EAGLE), dynamic tree (EAGLE-2).

Gumiho's early positions are drafted in the same way.
"""

from __future__ import annotations

import torch

from gumiho_decoder.drafters.eagle.serial import SerialConfig, SerialModel
from gumiho_decoder.drafters.files.own_format import OwnFormat
from gumiho_decoder.drafters.growing.cache import TreeCache
from gumiho_decoder.drafters.growing.heads import HeadsDrafter
from gumiho_decoder.target import Target


class EagleModel(OwnFormat, SerialModel):
    """EAGLE's head."""

    method = "eagle"
    config_class = SerialConfig


class EagleDrafter(HeadsDrafter):
    """A serial Transformer on a target's features, with its own cache.

    Pair t of the Transformer is (token t + 1, feature t): it stands at position t and predicts feature t + 1.
    """

    method = "eagle"

    def __init__(self, model: SerialModel, target: Target, name: str) -> None:
        super().__init__(model, target, name)
        self._cache = TreeCache(self.model.serial)
        self._outputs = torch.empty(0)

    def start(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.start`."""
        self._cache.clear()
        self.advance(tokens[1:], features)

    def advance(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.advance`."""
        inputs = self.model.combine(self.target.embed(tokens), features.to(self.target.head_device))
        self._outputs = self._cache.read(inputs)
        self._root = tokens[-1:]

    def branches(self, depth: int, roots: torch.Tensor | None = None) -> SerialBranches:
        """See `TreeDrafter.branches`."""
        return SerialBranches(self, *self.behind(roots))

    def behind(self, roots: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the predicted feature behind each root, (B, H), and the pairs verified before each draft, (B,)."""
        return (self._outputs[-1:], None) if roots is None else (self._outputs[roots - 1], roots)

    def release(self) -> None:
        """See `TreeDrafter.release`."""
        self._cache.drop_draft()


class SerialBranches:
    """One run of the Transformer for each level of a draft; see `Branches`.

    Attributes
    ----------
    features : Tensor, shape (B, n, H)
        Predicted feature behind each node of the last call.
    inputs : Tensor, shape (B, n, H)
        What the Transformer read for them; None before the first call.
    """

    def __init__(self, drafter: EagleDrafter, features: torch.Tensor, prefix: torch.Tensor | None) -> None:
        self._drafter = drafter
        self._draft = drafter._cache.draft(prefix)
        self.features = features[:, None]
        self.inputs: torch.Tensor | None = None

    def root(self) -> torch.Tensor:
        """See `Branches.root`."""
        return self._drafter.target.log_probabilities(self.features)

    def deeper(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Branches.deeper`."""
        self.inputs = self.combined(tokens, parents)
        self.features = self._draft.read(self.inputs, parents)
        rows = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        return self._drafter.target.log_probabilities(self.features), rows

    def combined(self, tokens: torch.Tensor, parents: torch.Tensor) -> torch.Tensor:
        """Return what the Transformer reads for nodes: each one's token with its own parent's feature, (B, n, H)."""
        embedded = self._drafter.target.embed(tokens)
        return self._drafter.model.combine(embedded, of_parents(self.features, parents))


def of_parents(values: torch.Tensor, parents: torch.Tensor) -> torch.Tensor:
    """Return, for each node, its parent's row of `values`: (B, m, H) by (B, n) -> (B, n, H)."""
    return values.gather(1, parents[:, :, None].expand(-1, -1, values.shape[-1]))
