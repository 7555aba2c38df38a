"""What growing a tree needs of a method, and what it yields; both batched over B starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch


class Branches(Protocol):
    """What a method adds to the growing of a tree: the distribution behind each node. Holds the state of one draft."""

    def root(self) -> torch.Tensor:
        """Return the log-probabilities behind each root, (B, 1, V), float32."""

    def deeper(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the distributions behind the nodes that go on at `depth` (1, 2, ...; called once for each in turn).

        Parameters
        ----------
        depth : int
        tokens : int64 Tensor, shape (B, n)
        parents : int64 Tensor, shape (B, n)
            Index of each node's parent among the nodes of the previous call (0, the root, at depth 1).

        Returns
        -------
        log_q : Tensor, shape (B, R, V)
            Float32.
        row : int64 Tensor, shape (B, n)
            Row of `log_q` behind each node.
        """


@dataclass(frozen=True)
class Grown:
    """Draft trees of B starts, N nodes each; see `Draft` for the fields.

    `path_scores` has one row a start, (B, N - 1).
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    depths: torch.Tensor
    ranks: torch.Tensor
    row: torch.Tensor
    log_q: torch.Tensor
    ancestors: torch.Tensor
    path_scores: torch.Tensor | None = None
