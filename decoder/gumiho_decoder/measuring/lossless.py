"""Is an output the target's own? Equality, token for token, with near-ties told apart from bugs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from gumiho_decoder.target import Target

# Gap between two logits that rounding may swap. One forward over eight rows and eight over one row sum differently:
# in float32 their logits differ by about 1e-5, while wrong methods left the path at gaps from 1e-3. Large logits are
# rounded more: the bound is never less than two of the dtype's steps at their size.
TIE_GAP = {torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.3}
VERDICTS = ("equal", "tie", "different")  # from the best to the worst


@dataclass(frozen=True)
class Comparison:
    """A speculative output beside the plain one.

    Attributes
    ----------
    verdict : str
        `equal`; `tie`: the outputs part where the target's two choices are closer than rounding; `different`.
    position : int or None
        First differing place, 0-based within the new tokens.
    gap : float or None
        Plain logit of the plain token less that of the other, at that place; None where one output is the other's
        beginning: a wrong stop.
    bound : float or None
        Largest gap there that still counts as a tie.
    """

    verdict: Literal["equal", "tie", "different"]
    position: int | None = None
    gap: float | None = None
    bound: float | None = None


@torch.inference_mode()
def compare(target: Target, prompt: Sequence[int], expected: Sequence[int], found: Sequence[int]) -> Comparison:
    """Compare a speculative output with the plain one; the target's cache is used up."""
    if tuple(expected) == tuple(found):
        return Comparison("equal")
    shared = [a == b for a, b in zip(expected, found, strict=False)]
    position = shared.index(False) if False in shared else len(shared)
    if position == len(shared):
        return Comparison("different", position)  # one output is the other's beginning: a wrong stop, never a tie
    logits = target.prefill([*prompt, *expected[:position]]).logits[-1]
    two = logits[[expected[position], found[position]]]
    gap = float(two[0] - two[1])
    bound = max(TIE_GAP[target.dtype], 2 * torch.finfo(target.dtype).eps * float(two.abs().max()))
    return Comparison("tie" if abs(gap) <= bound else "different", position, gap, bound)


def count_prompts(verdicts: Iterable[tuple[str, str | None]]) -> dict[str, int]:
    """Return how many prompts were checked, equal, tied, different; a prompt is as good as its worst turn.

    `verdicts`: One a turn; None: not checked.
    """
    worst: dict[str, str] = {}
    for prompt, verdict in verdicts:
        if verdict is not None:
            worst[prompt] = max(worst.get(prompt, "equal"), verdict, key=VERDICTS.index)
    counts = Counter(worst.values())
    return {"checked": len(worst), "equal": counts["equal"], "ties": counts["tie"], "different": counts["different"]}
