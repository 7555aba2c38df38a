"""A drafter that knows the target's own continuation and corrupts it where it is told to.

Random drafters are almost never accepted and so prove little: this one has long accepted paths, accepts every sibling
rank, and makes every kind of cache compaction happen, through the same growing of trees as all methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gumiho_decoder.drafters.growing.drafter import TreeDrafter


class ScriptedDrafter(TreeDrafter):
    """Behind a node on the true path the true token has the rank that `rank(place)` says, 0 for none of the first 40.

    `place` is the true token's index in the sequence.
    """

    name = method = "scripted"
    fingerprint = "0" * 64

    def __init__(
        self, sequence: Sequence[int], vocabulary: int, rank: Callable[[int], int], serial_steps: int | None = None
    ) -> None:
        self.sequence, self.vocabulary, self.rank = list(sequence), vocabulary, rank
        self.serial_steps = serial_steps
        self.device = torch.device("cpu")

    @property
    def root_token(self) -> torch.Tensor:
        return self.tokens[-1:]

    def start(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        assert len(features) == len(tokens) - 1
        self.tokens = tokens
        self.rows = len(features)

    def advance(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        assert len(features) == len(tokens)
        self.tokens = torch.cat([self.tokens, tokens])
        # The tokens it is told are the true ones, in order: what the target keeps is the accepted path, all of it.
        assert self.tokens.tolist() == (self.sequence + self.tokens.tolist())[: len(self.tokens)]

    def branches(self, depth: int, roots: torch.Tensor | None = None) -> Branches:
        return Branches(self, torch.tensor([len(self.tokens) - 1]) if roots is None else roots)

    def log_q(self, place: int, true: bool) -> torch.Tensor:
        random = np.random.default_rng(place)
        order = random.permutation(self.vocabulary)
        rank = self.rank(place) if true and place < len(self.sequence) else 0
        if place < len(self.sequence):
            order = order[order != self.sequence[place]]
            order = np.insert(order, rank - 1 if rank else min(40, len(order)), self.sequence[place])
        log_q = np.empty(self.vocabulary)
        log_q[order] = np.log(0.6) * np.arange(self.vocabulary)
        return torch.from_numpy(log_q - np.logaddexp.reduce(log_q)).float()


class Branches:
    def __init__(self, drafter: ScriptedDrafter, roots: torch.Tensor) -> None:
        self.drafter, self.roots = drafter, roots
        self.true = torch.ones(len(roots), 1, dtype=torch.bool)

    def _behind(self, depth: int) -> torch.Tensor:
        rows = [
            [self.drafter.log_q(int(root) + depth + 1, bool(true)) for true in row]
            for root, row in zip(self.roots, self.true, strict=True)
        ]
        return torch.stack([torch.stack(row) for row in rows])

    def root(self) -> torch.Tensor:
        return self._behind(0)

    def deeper(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sequence = self.drafter.sequence
        right = torch.tensor([[sequence[int(r) + depth] if int(r) + depth < len(sequence) else -1] for r in self.roots])
        self.true = self.true.gather(1, parents) & (tokens == right)
        rows = torch.arange(tokens.shape[1]).expand_as(tokens)
        return self._behind(depth), rows


def mixed(place: int) -> int:
    """Ranks that differ from place to place: mostly 1, some others, now and then none."""
    return int(np.random.default_rng(place + 7).choice([1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 0]))
