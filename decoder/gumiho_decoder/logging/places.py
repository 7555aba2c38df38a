"""Drafting from many places of a finished text at once, each blind to what comes behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from gumiho_decoder.draft import Drafter, DraftOptions
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_theory import ChainStructure, DynamicTree, InputError, Structure

MAX_TOP_K = 512
# What is drafted at once: bytes of distributions and of ancestor masks, and rows that a drafter reads.
_BYTES = 2**28
_ROWS = 1024


def check(drafter: Drafter, structures: Sequence[Structure], options: DraftOptions, *, depth: int, top_k: int) -> None:
    """Refuse what cannot be logged.

    Raises InputError: A drafter that only drafts at the end of a text, sampled candidates, a structure that the drafter
    cannot make, or depth or top_k out of range.
    """
    if not isinstance(drafter, TreeDrafter):
        raise InputError(
            f"drafter {drafter.name!r}", type(drafter).__name__, "one that drafts from any place of a text"
        )
    if options.random is not None:
        wanted = "'top': from each place another draw would give another length"
        raise InputError("every-position log, candidates", "'sampled'", wanted)
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 0 <= top_k <= MAX_TOP_K:
        raise InputError("every-position log, top_k", repr(top_k), f"an integer from 0 to {MAX_TOP_K}")
    for structure in structures:
        drafter.check(structure, options)
    if depth == 0:
        raise InputError("every-position log, depth", depth, "at least 1")
    drafter.check(ChainStructure(depth), options)


def most_places(structure: Structure, vocabulary: int, options: DraftOptions) -> int:
    """Return from how many places a structure is drafted at once."""
    if isinstance(structure, DynamicTree):
        if options.budget is not None:
            return 1  # the number of nodes is each draft's own
        levels, nodes = [1, *[structure.top_k] * (structure.depth - 1)], structure.total
    else:
        inner = {path[:-1] for path in structure.paths}
        levels, nodes = [*Counter(map(len, inner)).values(), 1], len(structure.paths) + 1
    return max(1, min(_BYTES // (4 * vocabulary * sum(levels) + nodes**2), _ROWS // max(levels)))


def batches(places: range, depth: int, ends: int, most: int) -> Iterator[tuple[range, int]]:
    """Yield, in order, places to draft from at once and the depth that they have room for, up to `depth`.

    Places near the end of the context have less room than the one before, and so go alone.
    """
    free = range(places.start, max(places.start, min(places.stop, ends - depth)))
    for at in range(free.start, free.stop, most):
        yield range(at, min(at + most, free.stop)), depth
    for place in range(free.stop, places.stop):
        yield range(place, place + 1), max(0, ends - 1 - place)


def behind_truth(
    drafter: TreeDrafter, text: torch.Tensor, batch: range, depth: int, top_k: int
) -> dict[str, list[list[Any]]]:
    """Return rank, q_draft, top_ids and top_q of B places at each depth behind the true prefix.

    Where the true token is unknown they mean nothing.
    """
    if depth == 0:
        return {name: [[] for _ in batch] for name in ("rank", "q_draft", "top_ids", "top_q")}
    roots = torch.arange(batch.start, batch.stop, device=text.device)
    # Any token stands for an unknown one.
    true = text[roots[:, None] + torch.arange(depth + 1, device=text.device)].clamp_min(0)
    columns = []
    try:
        branches = drafter.branches(depth, roots)
        log_q = branches.root()[:, 0]
        for d in range(1, depth + 1):
            if d > 1:
                tables, row = branches.deeper(d - 1, true[:, d - 1 : d], torch.zeros_like(roots)[:, None])
                log_q = tables[torch.arange(len(roots), device=row.device), row[:, 0]]
            columns.append(_candidates(log_q, true[:, d : d + 1], top_k))
    finally:
        drafter.release()
    rank, q_draft, ids, top_q = (torch.stack(parts, dim=1).tolist() for parts in zip(*columns, strict=True))
    return {
        "rank": [[value or None for value in row] for row in rank],
        "q_draft": [[None if value < 0 else value for value in row] for row in q_draft],
        "top_ids": [[[None if value < 0 else value for value in k] for k in row] for row in ids],
        "top_q": [[[None if value < 0 else value for value in k] for k in row] for row in top_q],
    }


def _candidates(log_q: torch.Tensor, true: torch.Tensor, top_k: int) -> tuple[torch.Tensor, ...]:
    """Of distributions (B, V) return the true tokens' rank and probability, (B,), and the best tokens', (B, k).

    A token that was no candidate at all has probability 0 and no rank (0), as in a trace, and is none of the best
    (-1); where there was no distribution nothing has a probability (-1).
    """
    of_true = log_q.gather(1, true)
    rank = torch.where(of_true.isfinite(), (log_q > of_true).sum(-1, keepdim=True) + 1, 0)
    q_draft = torch.where(log_q.amax(-1, keepdim=True) > -torch.inf, of_true.exp(), -1.0)
    best, ids = log_q.topk(top_k, dim=-1)
    some = best > -torch.inf
    return rank[:, 0], q_draft[:, 0], ids.where(some, -1), best.exp().where(some, -1.0)


def accepted_lengths(
    drafter: TreeDrafter,
    structure: Structure,
    options: DraftOptions,
    text: torch.Tensor,
    places: range,
    *,
    known: int,
    ended: bool,
    ends: int,
    vocabulary: int,
) -> list[list[int]]:
    """Return the accepted length of a structure from each place, and whether it is censored.

    It is where more might have been accepted: the known text ends there while the draft goes on, or the draft was cut
    there; and, as in a trace, at an accepted stop id.

    Parameters
    ----------
    text : int64 Tensor
        Known tokens, then as many unknown ones (-1) as the structure is deep.
    known : int
        Number of known tokens.
    ended : bool
        Whether the last of them ended the output.
    ends : int
        Positions of the models: the structure is cut near them, as decoding cuts it.
    vocabulary : int
        Tokens of the target.
    """
    found = []
    for batch, room in batches(places, structure.depth, ends, most_places(structure, vocabulary, options)):
        asked = structure.cut(room)
        cut = asked.depth < structure.depth
        if asked.depth == 0:
            found += [[0, int(cut)] for _ in batch]
            continue
        roots = torch.arange(batch.start, batch.stop, device=text.device)
        try:
            grown = drafter.grow(asked, options, drafter.branches(asked.depth, roots), text[roots])
        finally:
            drafter.release()
        # Siblings differ in token, so the nodes whose whole path is the text's form one path.
        right = grown.tokens == text[roots[:, None] + grown.depths]
        reached = ~(grown.ancestors & ~right[:, None]).any(-1)
        accepted, node = ((grown.depths + 1) * reached).max(dim=1)
        accepted = accepted - 1
        # A token below 0 is no candidate, only the place of one.
        goes_on = ((grown.parents == node[:, None]) & (grown.tokens >= 0)).any(1)
        censored = (roots + accepted == known - 1) & (goes_on | ended)
        if cut:
            censored |= accepted == asked.depth
        found += torch.stack([accepted, censored], dim=1).tolist()
    return found
