"""What every drafter does: start from verified text, propose a draft tree, advance by what was accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from gumiho_theory import CostProfile, DraftTree, ScoreCalibration, Structure


@dataclass(frozen=True)
class Draft:
    """A proposed draft tree of N nodes. All tensors lie on the drafter's device.

    Attributes
    ----------
    tokens : int64 Tensor, shape (N,)
        Node tokens; node 0 is the root, the last verified token.
    parents : int64 Tensor, shape (N,)
        -1 at the root; a parent comes before its children, and siblings differ in token.
    depths : int64 Tensor, shape (N,)
        Distance from the root.
    ancestors : bool Tensor, shape (N, N)
        True where the column's node is the row's ancestor or the row itself.
    ranks : int64 Tensor, shape (N,)
        1-based rank of each node among its parent's candidates (of a sampled draft: the number of the draw); 0 at the
        root.
    log_q : Tensor, shape (distributions, vocabulary)
        Log-probabilities the candidates were taken from, float32.
    row : int64 Tensor, shape (N,)
        Row of `log_q` behind each node; -1 where none was computed.
    depth : int
        Deepest position that this draft could have had accepted.
    sampled : bool
        Whether candidates were drawn at random from `log_q` (then verification has to take that into account) or are
        its most probable tokens.
    host_parents : int64 Tensor, shape (N,), or None
        `parents` on the host, where they are known there without waiting for the device.
    path_scores : Tensor, shape (N - 1,), or None
        Of a dynamic tree: the path scores of its nodes but the root, best first: by the drafter, calibrated where it
        was asked to be, log P(the whole path is accepted).
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    depths: torch.Tensor
    ancestors: torch.Tensor
    ranks: torch.Tensor
    log_q: torch.Tensor
    row: torch.Tensor
    depth: int
    sampled: bool = False
    host_parents: torch.Tensor | None = None
    path_scores: torch.Tensor | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes N, root included."""
        return len(self.tokens)

    @property
    def tree(self) -> DraftTree:
        """The topology on the host, for records and pictures: reading it waits for the device."""
        return DraftTree(self.parents.cpu().numpy(), self.ranks.cpu().numpy())


@dataclass(frozen=True)
class DraftOptions:
    """How candidates are chosen.

    Attributes
    ----------
    random : torch.Generator or None
        Given, candidates are drawn from the draft distributions at `temperature`, siblings without replacement; a
        chain or a static tree only. None: the most probable tokens.
    temperature : float
        Of the draws.
    calibration : ScoreCalibration or None
        Makes acceptance probabilities of draft probabilities where a dynamic tree ranks its nodes.
    budget : CostProfile or None
        Given, a dynamic tree has as many nodes, up to its total, as pay for their verification. Choosing the number
        waits for the device once.
    """

    random: torch.Generator | None = None
    temperature: float = 1.0
    calibration: ScoreCalibration | None = None
    budget: CostProfile | None = None


class Drafter(Protocol):
    """The protocol. A drafter holds the state of one sequence, like the target.

    Attributes
    ----------
    name, method : str
        What it was loaded from; `gumiho`, `eagle`, `medusa`, `hydra`, `draft-model` or `ngram`.
    depth : int or None
        Deepest position it can draft; None: any.
    serial_steps : int or None
        Positions drafted one after another; later ones come from parallel heads at once. None: all.
    positions : int or None
        Most tokens a sequence may hold before drafting ends; None: as many as the target's.
    fingerprint : str
        SHA-256 of its weights: what a calibration belongs to.
    """

    name: str
    method: str
    depth: int | None
    serial_steps: int | None
    positions: int | None
    fingerprint: str

    def start(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """Begin a sequence.

        Parameters
        ----------
        tokens : int64 Tensor, shape (n + 1,)
            Verified tokens; the last is the root.
        features : Tensor, shape (n, H)
            The target's last hidden states (after the final norm) of all of them but the root.
        """

    def propose(self, structure: Structure, options: DraftOptions = ...) -> Draft:
        """Draft behind the root. The verified state is unchanged."""

    def check(self, structure: Structure, options: DraftOptions) -> None:
        """Refuse, with an InputError, a structure that this drafter cannot make."""

    def advance(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """Take in m verified tokens (accepted ones and the new root) and the features, (m, H), before each."""
