"""Muon, orthogonalised in float32 on a CPU: torch's own rounds to bfloat16, which few CPUs multiply at any speed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import torch
from torch import nn

# Quintic Newton-Schulz: the slope at 0 is as large as can be, the values stay between 0.5 and 1.5 (Jordan, 2024,
# https://kellerjordan.github.io/posts/muon/).
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_SMALLEST = 1e-7


class Muon(torch.optim.Optimizer):
    """Momentum orthogonalised by Newton-Schulz, for matrices; learning rates are of AdamW's scale.

    Matrices of one shape are orthogonalised together. On an accelerator in bfloat16, as `torch.optim.Muon` does
    everywhere; with a CPU's float32 the update differs from that by rounding only.

    Parameters
    ----------
    params : iterable of Parameter
        Matrices.
    lr, weight_decay, momentum : float
        Nesterov momentum; the rate is scaled by 0.2 sqrt(larger side) ("match_rms_adamw").
    """

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            alike: dict[tuple[torch.Size, torch.device], list[nn.Parameter]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    alike[p.shape, p.device].append(p)
            for same in alike.values():
                updates = orthogonal(torch.stack([self._direction(p, group["momentum"]) for p in same]))
                rate = group["lr"] * 0.2 * max(same[0].shape) ** 0.5
                for p, update in zip(same, updates.to(same[0].dtype), strict=True):
                    p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=rate)

    def _direction(self, p: nn.Parameter, momentum: float) -> torch.Tensor:
        state = self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(p)
        kept = state["momentum_buffer"].lerp_(p.grad, 1 - momentum)
        return p.grad.lerp(kept, momentum)


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """Return each matrix with its singular values moved near 1. Shape (n, rows, columns), kept."""
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = (matrices.mT if tall else matrices).to(torch.float32 if matrices.device.type == "cpu" else torch.bfloat16)
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(_SMALLEST)
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
