"""What the target said of one output: gathered while it is decoded, or read in one forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from gumiho_decoder.cycle import Cycle
from gumiho_decoder.target import Target
from gumiho_theory import InputError


class Collector:
    """What `generate` calls after each cycle: gathers one output's features and probabilities, on their device.

    Parameters
    ----------
    record : callable, optional
        Called with each cycle as well.
    """

    def __init__(self, record: Callable[[Cycle], None] | None = None) -> None:
        self._record = record
        self._features: list[torch.Tensor] = []
        self._last = torch.empty(0)
        self._p_target: list[torch.Tensor] = []

    def __call__(self, cycle: Cycle) -> None:
        """Take in a cycle."""
        verified = cycle.verified
        path = torch.tensor(cycle.path, device=verified.logits.device)
        new = torch.tensor(cycle.new, device=path.device)
        self._p_target.append(verified.logits[path].softmax(-1).gather(1, new[:, None])[:, 0])
        self._features.append(cycle.context)
        self._last = verified.features[path]
        if self._record is not None:
            self._record(cycle)

    def __bool__(self) -> bool:
        """Whether there was a cycle."""
        return bool(self._features)

    @property
    def features(self) -> torch.Tensor:
        """The target's features of all verified tokens but the last, (n, H)."""
        return torch.cat([*self._features, self._last])

    @property
    def p_target(self) -> list[float]:
        """The target's probability of each token behind the first new one, as far as it was verified."""
        return torch.cat(self._p_target).tolist()


class GivenText(Collector):
    """What a `Collector` holds after `generate`, of an output that was made before: greedy texts are every drafter's.

    The target's cache is left as `generate` leaves it: with all tokens but the output's last.

    Parameters
    ----------
    target : Target
    prompt : sequence of int
    output : sequence of int
        New tokens, as plain decoding made them.

    Raises
    ------
    InputError
        No output, or a text longer than the target's positions.
    """

    @torch.inference_mode()
    def __init__(self, target: Target, prompt: Sequence[int], output: Sequence[int]) -> None:
        super().__init__()
        if not output:
            raise InputError("output", "no token", "at least one")
        known = [*prompt, *output]
        features = target.prefill(known[:-1]).features
        self._features.append(features)
        self._last = features[:0]
        behind = torch.tensor(known[len(prompt) + 1 :], device=features.device)
        log_p = target.log_probabilities(features[len(prompt) :])
        self._p_target.append(log_p.gather(1, behind[:, None])[:, 0].exp())
