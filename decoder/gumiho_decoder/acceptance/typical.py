"""Medusa's typical acceptance: a LOSSY rule, what it emits does not follow the target's distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from gumiho_decoder.acceptance.sampling import check_shapes, draw, is_number
from gumiho_theory import InputError


@dataclass(frozen=True)
class TypicalAcceptance:
    """Lossy: accepts what the target finds typical (Medusa, arXiv 2401.10774, section 2.3.1).

    A token is accepted when its p_target > min(epsilon, delta exp(-H)), H being the entropy (in nats) of the target's
    distribution at that place. The released Medusa adds 1e-5 inside H's logarithm, which lowers H where the
    distribution is spread over very many tokens; here H is the paper's.

    Attributes
    ----------
    epsilon : float
        The released posterior_threshold; at 0, all that the target can emit is accepted.
    delta : float
        The released posterior_alpha.

    Raises
    ------
    InputError
        epsilon is outside [0, 1], or delta is negative or not finite.
    """

    epsilon: float = 0.3
    delta: float = 0.09

    def __post_init__(self) -> None:
        if not is_number(self.epsilon) or not 0 <= self.epsilon <= 1:
            raise InputError("epsilon", repr(self.epsilon), "a number from 0 to 1")
        if not is_number(self.delta) or not 0 <= self.delta < math.inf:
            raise InputError("delta", repr(self.delta), "a finite number, at least 0")

    def threshold(self, p_target: torch.Tensor) -> torch.Tensor:
        """Return what a token's probability must exceed, shape (...), where the target's distribution is (..., V)."""
        return (self.delta * torch.exp(-torch.special.entr(p_target).sum(-1))).clamp(max=self.epsilon)


def verify_typical(
    tokens: torch.Tensor,
    parents: torch.Tensor,
    ancestors: torch.Tensor,
    depths: torch.Tensor,
    p_target: torch.Tensor,
    rule: TypicalAcceptance,
    random: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Accept the longest typical path; of several, the one the target finds most probable.

    The bonus token is drawn from p_target behind it. (The released Medusa draws it from p_target cut at the same
    threshold, or takes its most probable token.) At temperature 0 Medusa decodes greedily: this rule is for sampling,
    and the caller keeps to that.

    Parameters
    ----------
    tokens, parents, ancestors, depths, p_target : Tensor
        The draft tree and the target's distributions, as everywhere in `sampling`; InputError where shapes do not fit.
    rule : TypicalAcceptance
    random : torch.Generator
        On p_target's device. One uniform is drawn.

    Returns
    -------
    node, bonus : int64 Tensor, 0-d
        Deepest accepted node, and the token behind it.
    """
    check_shapes(tokens, parents, p_target)
    uniform = torch.rand((), generator=random, dtype=torch.float64, device=p_target.device)
    parents = parents.to(p_target.device, non_blocking=True)
    behind = p_target.double()
    own = behind[parents[1:], tokens[1:]]
    own = torch.cat([own.new_ones(1), own])  # the root is accepted, and counts nothing
    accepted = own > rule.threshold(behind)[parents]
    accepted[0] = True
    on_path = (accepted | ~ancestors).all(1)
    longest = on_path & (depths == torch.where(on_path, depths, 0).amax())
    log_p = torch.where(ancestors, own.log(), 0.0).sum(1)
    node = torch.where(longest, log_p, -math.inf).argmax()
    return node, draw(p_target.index_select(0, node[None])[0], uniform)
