"""Drafting with Gumiho heads: the serial Transformer for early positions, parallel MLP heads for all later ones."""

from __future__ import annotations

import torch

from gumiho_decoder.drafters.eagle.drafter import EagleDrafter, SerialBranches, of_parents
from gumiho_decoder.drafters.gumiho.model import GumihoModel, StackedHeads
from gumiho_decoder.target import Target


class GumihoDrafter(EagleDrafter):
    """Gumiho heads on a target."""

    method = "gumiho"
    model: GumihoModel

    def __init__(self, model: GumihoModel, target: Target, name: str) -> None:
        super().__init__(model, target, name)
        self.depth = model.config.depth
        self.serial_steps = model.config.serial_steps
        self.heads = StackedHeads(self.model.heads) if self.model.heads else None

    def branches(self, depth: int, roots: torch.Tensor | None = None) -> GumihoBranches:
        """See `TreeDrafter.branches`."""
        return GumihoBranches(self, depth, *self.behind(roots))


class GumihoBranches(SerialBranches):
    """Serial runs, then all heads at once; see `Branches`."""

    def __init__(self, drafter: GumihoDrafter, depth: int, features: torch.Tensor, prefix: torch.Tensor | None) -> None:
        super().__init__(drafter, features, prefix)
        self._heads, self._serial, self._depth = drafter.heads, drafter.serial_steps, depth
        self._target, self._own = drafter.target, drafter.model.head_fc is not None
        self._behind: torch.Tensor | None = None  # (heads, B, branches, V)
        self._branch: torch.Tensor | None = None  # (B, n): the serial branch that each node continues
        self._before: torch.Tensor | None = None  # (B, n, H): what the heads read of the last serial level

    def deeper(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Branches.deeper`."""
        if depth < self._serial:
            own = self._for_heads(tokens, parents) if self._own else None
            made = super().deeper(depth, tokens, parents)
            self._before = own if self._own else self.inputs
            return made
        if depth == self._serial:
            # Heads read the inputs of a branch's last two serial tokens, the earlier one being its own parent's.
            window = inputs = self._for_heads(tokens, parents)
            if self._before is not None:
                window = torch.cat([of_parents(self._before, parents), inputs], dim=-1)
            out = self._heads(window.flatten(0, 1), self._depth - self._serial)
            self._behind = self._target.log_probabilities(out.unflatten(1, tokens.shape))
            self._branch = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        else:
            self._branch = self._branch.gather(1, parents)
        return self._behind[depth - self._serial], self._branch

    def _for_heads(self, tokens: torch.Tensor, parents: torch.Tensor) -> torch.Tensor:
        model = self._drafter.model
        return model.combine_for_heads(self._target.embed(tokens), of_parents(self.features, parents))
