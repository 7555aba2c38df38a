"""Full tree attention as the official Gumiho code has it. LOSSY in both readings, and off by default.

Each path of the draft tree that is shorter than the deepest is lengthened by the most common node of every missing
depth. The released code also means to let the short path's last node see the borrowed ones, but its causal mask keeps
those entries closed: `released` is what it does, `literal` what its mask edit would do.

Why it is not lossless: the first borrowed token may be accepted, and is then right, since the last real node saw only
its own path. But that token is the bonus token, which comes free anyway. What is read *behind* it comes from a node
whose state was computed under other ancestors, so that the next token, and the keys and values kept, belong to another
text. If those logits are thrown away nothing is gained; a gain needs one verified node for each (path, token). Hence:
lossless at no extra verified node means a gain of exactly zero.
"""

from __future__ import annotations

import numpy as np
import torch

from gumiho_decoder.acceptance.rules import Accepted, Greedy
from gumiho_decoder.draft import Draft


class FullTreeAttention(Greedy):
    """Greedy acceptance along lengthened paths; `literal` also opens the mask.

    The paths are built on the host, which costs a wait for the device: this mode is for studying what it does.
    """

    lossless = False

    def __init__(self, reading: str) -> None:
        self.name = f"full tree attention, {reading} (lossy)"
        self._literal = reading == "literal"

    def mask(self, draft: Draft) -> torch.Tensor:
        """See `Rule.mask`: in the literal reading a short path's last node sees the nodes that lengthen it."""
        if not self._literal:
            return draft.ancestors
        mask = draft.ancestors.clone()
        paths, lengths = lengthened(draft)
        for path, length in zip(paths, lengths, strict=True):
            mask[path[length - 1], path[length:]] = True
        return mask

    def accept(self, draft: Draft, logits: torch.Tensor) -> Accepted:
        """See `Rule.accept`: the path with most tokens right in a row, the first of several."""
        paths = torch.from_numpy(lengthened(draft)[0]).to(logits.device)
        choice = logits.argmax(dim=-1)
        right = draft.tokens[paths[:, 1:]] == choice[paths[:, :-1]]
        lengths = right.cumprod(dim=1).sum(dim=1)
        best = lengths.argmax()
        path = paths[best]
        return Accepted.of(draft, path, lengths[best], choice[path[lengths[best]]])


def lengthened(draft: Draft) -> tuple[np.ndarray, list[int]]:
    """Return the root-to-leaf paths, all as long as the deepest, int64 (leaves, depth + 1), and their own lengths.

    A depth's most common node is the one that most paths run through; of several, the first.
    """
    tree = draft.tree
    paths = tree.paths()
    lengths = [len(path) for path in paths]
    deepest = max(lengths)
    for depth in range(1, deepest):
        through = [path[depth] for path, length in zip(paths, lengths, strict=True) if length > depth]
        nodes, counts = np.unique(through, return_counts=True)
        for path, length in zip(paths, lengths, strict=True):
            if length <= depth:
                path.append(int(nodes[counts.argmax()]))
    return np.array(paths, dtype=np.int64).reshape(len(paths), deepest), lengths
