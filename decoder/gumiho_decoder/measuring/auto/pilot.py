"""What each structure yields on a few known texts of the target's own: tokens and cycles, as decoding would go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.growing import TreeDrafter
from gumiho_decoder.logging.places import accepted_lengths, batches, most_places
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, Structure


def ends_of(target: Target, drafter: TreeDrafter) -> int:
    """Return how many tokens a sequence may have before drafting ends."""
    return min(target.positions, drafter.positions or target.positions)


def pilot(
    target: Target,
    drafter: TreeDrafter,
    structures: Sequence[Structure],
    texts: Sequence[tuple[Sequence[int], Sequence[int], bool]],
    options: DraftOptions,
) -> dict[Structure, NDArray[np.int64]]:
    """Return each structure's tokens (bonus included) and complete cycles on each of some known texts, (texts, 2).

    Cycle follows cycle as in decoding. Those count that begin so early that each structure's draft ends within the
    text: which cycles count must not depend on how long they are.

    Parameters
    ----------
    texts : sequence of (prompt, output, ended)
        Token ids of the target's own; whether the last one ended the output.
    """
    deepest = max(structure.depth for structure in structures)
    longest = max((s for s in structures if isinstance(s, ChainStructure)), key=lambda s: s.length, default=None)
    ends = ends_of(target, drafter)
    sums = {structure: np.zeros((len(texts), 2), np.int64) for structure in structures}
    for index, (prompt, output, ended) in enumerate(texts):
        known = [*prompt, *output]
        begin, end = len(prompt), min(len(known) - (1 if ended else deepest), ends - deepest)
        if begin >= end:
            continue
        text = torch.tensor([*known, *[-1] * deepest], device=target.head_device)
        drafter.start(text[: len(known)][:ends], target.prefill(known[:-1]).features[: ends - 1])
        lengths: dict[Structure, list[list[int]]] = {}
        for structure in [longest, *structures] if longest is not None else structures:
            if isinstance(structure, ChainStructure) and longest in lengths:
                # A chain is the beginning of a longer one.
                k = structure.length
                lengths[structure] = [[min(a, k), int(censored and a <= k)] for a, censored in lengths[longest]]
            else:
                most = most_places(structure, target.vocab_size, options)
                lengths[structure] = [
                    length
                    for batch, _ in batches(range(begin, end), structure.depth, ends, most)
                    for length in accepted_lengths(
                        drafter, structure, structure, options, text, batch, len(known), ended
                    )
                ]
        for structure in structures:
            at, found = 0, lengths[structure]
            while at < len(found) and not found[at][1]:
                sums[structure][index] += found[at][0] + 1, 1
                at += found[at][0] + 1
    return sums
