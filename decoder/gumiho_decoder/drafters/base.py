"""What every drafter does: start from verified text, propose a draft tree, advance by what was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from gumiho_theory import ChainStructure, DraftTree, DynamicTree


@dataclass(frozen=True)
class Draft:
    """A proposed draft tree.

    Attributes
    ----------
    tree : DraftTree
        Topology over N nodes; node 0 is the root (the last verified token), parents before children.
    tokens : Tensor, shape (N,)
        Node tokens, on the drafter's device; `tokens[0]` is the root.
    log_q : Tensor, shape (distributions, vocabulary)
        Log-probabilities the drafter drew candidates from.
    row : tuple of int, length N
        Row of `log_q` that holds a node's continuations; -1 where none was drafted behind it.
    """

    tree: DraftTree
    tokens: torch.Tensor
    log_q: torch.Tensor
    row: tuple[int, ...]


class Drafter(Protocol):
    """The protocol. A drafter holds the state of one sequence, like the target.

    `features` are the target's last hidden states (after the final norm), one row a token.
    """

    name: str

    def start(self, tokens: Sequence[int], features: torch.Tensor) -> None:
        """Begin a sequence: `features` (n rows) belong to the first n of n + 1 `tokens`; the last is the root."""

    def propose(self, structure: ChainStructure | DynamicTree) -> Draft:
        """Draft behind the root. The drafter's verified state is unchanged."""

    def advance(self, tokens: Sequence[int], features: torch.Tensor) -> None:
        """Take in verified tokens (accepted ones and the new root) and the features of the tokens before each."""
