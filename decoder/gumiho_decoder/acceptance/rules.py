"""Which drafted tokens the target accepts: the rules, each a pure function of the draft and the target's logits.

A rule draws whatever it draws from one generator, and the host waits for the device once a cycle: here, to read which
tokens were accepted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from gumiho_decoder.acceptance.sampling import Warp, draw, verify_sampled
from gumiho_decoder.acceptance.typical import TypicalAcceptance, verify_typical
from gumiho_decoder.draft import Draft


@dataclass(frozen=True)
class Accepted:
    """What a cycle yields; the lists and the tensors hold the same.

    Attributes
    ----------
    path : list of int
        Accepted nodes, root first, so that the accepted length is `len(path) - 1`.
    new : list of int
        Their tokens, and last the bonus token: free if the draft ended there, the correction if it erred.
    nodes, tokens : int64 Tensor, shape (len(path),)
        `path` and `new` on the device.
    """

    path: list[int]
    new: list[int]
    nodes: torch.Tensor
    tokens: torch.Tensor

    @classmethod
    def of(cls, draft: Draft, path: torch.Tensor, length: torch.Tensor, bonus: torch.Tensor) -> Accepted:
        """Read an accepted path: its nodes (only the first `length` + 1 entries count), and the token behind it."""
        tokens = torch.cat([draft.tokens[path[1:]], bonus[None]])
        host = torch.cat([length[None], bonus[None], path, tokens]).tolist()  # the one wait of a cycle
        n = host[0]
        new = [*host[2 + len(path) : 2 + len(path) + n], host[1]]
        return cls(host[2 : 3 + n], new, path[: n + 1], torch.cat([tokens[:n], bonus[None]]))

    @classmethod
    def at(cls, draft: Draft, node: torch.Tensor, bonus: torch.Tensor) -> Accepted:
        """Read the path that ends at a node, 0-d, and the token behind it."""
        return cls.of(draft, *path_to(draft, node), bonus)


def path_to(draft: Draft, node: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a node's ancestors and itself, root first, then nodes that do not count, (depth + 1,); and its depth."""
    order = torch.argsort(~_at(draft.ancestors, node), stable=True)
    return order[: draft.depth + 1], _at(draft.depths, node)


def follow(draft: Draft, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the deepest node whose whole path is the target's own choice, and its choice behind it, both 0-d."""
    choice = logits.argmax(dim=-1)
    right = draft.tokens == choice[draft.parents.clamp_min(0)]
    right[0] = True
    # Siblings differ in token, so the nodes whose whole path is right form one path.
    reached = ~(draft.ancestors & ~right).any(dim=1)
    node = ((draft.depths + 1) * reached).argmax()
    return node, _at(choice, node)


def _at(values: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
    """Return `values[node]`; written so, an index of no dimension would be read on the host first."""
    return values.index_select(0, node[None])[0]


class Rule(ABC):
    """How tokens are chosen and drafts accepted."""

    name: str
    lossless = True

    @abstractmethod
    def pick(self, logits: torch.Tensor) -> torch.Tensor:
        """Choose a token, 0-d, by the target's logits, (V,): plain decoding."""

    @abstractmethod
    def accept(self, draft: Draft, logits: torch.Tensor) -> Accepted:
        """Accept a path of a draft by the target's logits behind each node, (N, V)."""

    def mask(self, draft: Draft) -> torch.Tensor:
        """Return what each node sees of the others when it is verified, bool (N, N)."""
        return draft.ancestors


class Greedy(Rule):
    """Temperature 0: the target's own choices, followed down the tree."""

    name = "greedy"

    def pick(self, logits: torch.Tensor) -> torch.Tensor:
        """See `Rule.pick`."""
        return logits.argmax()

    def accept(self, draft: Draft, logits: torch.Tensor) -> Accepted:
        """See `Rule.accept`."""
        return Accepted.at(draft, *follow(draft, logits))


class Sampling(Rule):
    """Temperature above 0, exact: the output has the target's warped distribution, whatever was drafted."""

    name = "sampling"

    def __init__(self, warp: Warp, random: torch.Generator) -> None:
        self._warp, self._random = warp, random

    def pick(self, logits: torch.Tensor) -> torch.Tensor:
        """See `Rule.pick`."""
        uniform = torch.rand((), dtype=torch.float64, device=logits.device, generator=self._random)
        return draw(self._warp(logits), uniform)

    def accept(self, draft: Draft, logits: torch.Tensor) -> Accepted:
        """See `Rule.accept`."""
        p_target = self._warp(logits)
        q_draft = draft.log_q[draft.row.clamp_min(0)].exp() if draft.sampled and len(draft.log_q) else None
        parents = draft.parents if draft.host_parents is None else draft.host_parents
        shape = draft.tokens, parents, draft.ancestors, draft.depths
        return Accepted.at(draft, *verify_sampled(*shape, p_target, q_draft, self._random))


class Typical(Sampling):
    """Medusa's typical acceptance: LOSSY, the output's distribution is not the target's."""

    name = "typical (lossy)"
    lossless = False

    def accept(self, draft: Draft, logits: torch.Tensor) -> Accepted:
        """See `Rule.accept`."""
        shape = draft.tokens, draft.parents, draft.ancestors, draft.depths
        return Accepted.at(draft, *verify_typical(*shape, self._warp(logits), TypicalAcceptance(), self._random))
