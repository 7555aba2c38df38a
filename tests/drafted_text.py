"""Texts of known hidden difficulty, and the traces that drafts of any length leave on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_theory import EveryPositionLog, Structure, Trace


@dataclass(frozen=True)
class Text:
    """One output: whether a draft's token is right there is settled by the text, whoever drafts it from where."""

    difficulty: np.ndarray  # [T], 0 hard or 1 easy
    luck: np.ndarray  # [T], uniform
    shift: float  # of the prompt, on the logit scale


def draw_texts(
    rng: np.random.Generator, prompts: int, tokens: int, keep: float = 0.9, easy: float = 0.6, spread: float = 0.2
) -> list[Text]:
    """Draw texts whose tokens keep the difficulty of the token before, or else are easy with probability `easy`."""
    texts = []
    for _ in range(prompts):
        new = rng.random(tokens) < easy
        kept = rng.random(tokens) < keep
        difficulty = np.zeros(tokens, dtype=int)
        for t in range(tokens):
            difficulty[t] = difficulty[t - 1] if t and kept[t] else new[t]
        texts.append(Text(difficulty, rng.random(tokens), rng.normal(0, spread)))
    return texts


def accepted_lengths(
    text: Text, length: int, logits: Sequence[float], effects: Sequence[float], mistake: float = 0.0
) -> list[int]:
    """Draft a text with chain:`length`, token by token; a cycle that would go beyond the text's end is left out."""
    lengths, position, behind_mistake = [], 0, False
    while True:
        accepted = 0
        for depth in range(length + 1):
            if position + depth == len(text.luck):
                return lengths
            at = position + depth
            level = logits[text.difficulty[at]] + effects[min(depth, len(effects) - 1)] + text.shift
            right = text.luck[at] < 1 / (1 + np.exp(-(level - mistake * behind_mistake)))
            behind_mistake = not right
            if depth == length or not right:
                break
            accepted += 1
        lengths.append(accepted)
        position += accepted + 1


def trace_of(outputs: Sequence[Sequence[int]], length: int, structure: str | None = None) -> Trace:
    """Write the accepted lengths of each prompt as a trace without ranks."""
    rows: list[dict[str, Any]] = []
    for number, lengths in enumerate(outputs):
        position = 10
        for cycle, accepted in enumerate(lengths):
            row = {"prompt_id": f"p{number}", "task": f"task {number % 4}", "turn": 0, "cycle": cycle}
            row |= {"position": position, "drafted": length, "nodes": length + 1, "accepted": accepted}
            rows.append(row | {"committed": accepted + 1})
            position += accepted + 1
    return Trace.from_rows(rows, {"structure": structure or f"chain:{length}"})


def draft_texts(
    texts: Sequence[Text], length: int, logits=(-0.4, 1.9), effects=(0.0, -0.2, -0.3), mistake=0.3
) -> Trace:
    """Draft every text with chain:`length`."""
    return trace_of([accepted_lengths(text, length, logits, effects, mistake) for text in texts], length)


def log_texts(
    texts: Sequence[Text], depth: int, logits=(-0.4, 1.9), effects=(0.0, -0.2, -0.3), structures: Sequence[str] = ()
) -> EveryPositionLog:
    """Write the every-position log of a drafter on every text; what follows a true prefix knows of no mistake.

    A token that is not the drafter's first is its second, third or none, as luck has it. Of each of `structures` the
    accepted length is that of the two best candidates everywhere, so that there is something to read off.
    """
    rows: list[dict[str, Any]] = []
    deepest = [Structure.parse(text).depth or 0 for text in structures]
    for number, text in enumerate(texts):
        for at in range(len(text.luck)):
            known = min(depth, len(text.luck) - 1 - at)
            ranks: list[int | None] = []
            for i in range(known):
                level = logits[text.difficulty[at + 1 + i]] + effects[min(i, len(effects) - 1)] + text.shift
                right = 1 / (1 + np.exp(-level))
                beyond = (text.luck[at + 1 + i] - right) / (1 - right)
                ranks.append(1 if beyond < 0 else 2 if beyond < 0.4 else 3 if beyond < 0.6 else None)
            among_two = next((i for i, rank in enumerate(ranks) if rank not in (1, 2)), known)
            nothing = [None] * (depth - known)
            row = {"prompt_id": f"p{number}", "task": f"task {number % 4}", "turn": 0, "position": 10 + at}
            row |= {"drafted": depth, "stop_reason": "length" if at == len(text.luck) - 1 else None}
            row |= {"true_token": [0] * known + nothing, "rank": ranks + nothing}
            row |= {"q_draft": [2.0 ** -(rank or 5) for rank in ranks] + nothing}
            row |= {"accepted": [min(among_two, most) for most in deepest], "censored": [0] * len(deepest)}
            rows.append(row)
    facts = {"top_k": 0, "temperature": 0.0, "candidates": "top", "stop_ids": [], "structures": list(structures)}
    return EveryPositionLog.from_rows(rows, facts)
