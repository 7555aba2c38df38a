"""Which drafted tokens the target accepts."""

from __future__ import annotations

import torch

from gumiho_decoder.drafters.base import Draft


def greedy(draft: Draft, logits: torch.Tensor) -> tuple[list[int], int]:
    """Follow the target's own choices down the tree.

    Parameters
    ----------
    draft : Draft
    logits : Tensor, shape (nodes, vocabulary)
        The target's next-token logits behind each node.

    Returns
    -------
    path : list of int
        Accepted nodes, root first, so that the accepted length is `len(path) - 1`.
    bonus : int
        The target's token behind the last of them: free if the draft ended there, the correction if it erred.
    """
    choice = logits.argmax(dim=-1).tolist()
    tokens = draft.tokens.tolist()
    # Siblings differ in token, so at most one child can match.
    child = {(parent, tokens[node]): node for node, parent in enumerate(draft.tree.parents.tolist()) if node}
    path = [0]
    while (path[-1], choice[path[-1]]) in child:
        path.append(child[path[-1], choice[path[-1]]])
    return path, choice[path[-1]]
