"""An output that is known already, read by the target in one forward, for the every-position log of another drafter."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gumiho_decoder.logging.every_position import Collector
from gumiho_decoder.target import Target
from gumiho_theory import InputError


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
