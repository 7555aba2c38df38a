"""The choice of a draft structure, by the times of cycles here and their tokens on the prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.logging.places import accepted_lengths
from gumiho_decoder.loop import plain
from gumiho_decoder.measuring.auto.times import KeptTimes, measure_times
from gumiho_decoder.measuring.machine import busy
from gumiho_decoder.measuring.profile.pairs import DEPTH
from gumiho_decoder.measuring.prompts import spread
from gumiho_decoder.measuring.resampling import interval
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, CostProfile, DynamicTree, InputError, Structure

LONGEST_CHAIN = 10
TOTALS = (8, 16, 24, 32, 48, 60)
PILOT_PROMPTS = 8
PILOT_TOKENS = 48
ENOUGH_CYCLES = 30
LEAST_POSITIONS = 32


@dataclass(frozen=True)
class Candidate:
    """What one structure promises.

    Attributes
    ----------
    structure : Structure
    tau : float
        Tokens a cycle (bonus included) on the pilot texts; 1 where they are too short to say.
    cycle_seconds : float
        Time of a whole cycle.
    speedup : float
        tau plain steps' time over a cycle's: relative to plain decoding, prefill left out.
    """

    structure: Structure
    tau: float
    cycle_seconds: float
    speedup: float


@dataclass(frozen=True)
class Choice:
    """The structure chosen, and why.

    Attributes
    ----------
    structure : Structure
        Of the largest predicted speedup, be it below 1.
    speedup : float
        Predicted for it. The largest of many estimates from a small sample is rather too large.
    interval : (float, float) or None
        95 %, pilot texts resampled, the times taken as exact; None for a single text or no cycle.
    pilot_cycles : int
        Cycles that its tau is taken from; 0 means that the pilot texts ended too soon for any.
    profile : CostProfile
        The pair's step times here.
    candidates : tuple of Candidate
    source : str
        Where the times are from: `measured` now, or `cached`, on disk since an earlier choice.
    note : str or None
        What speaks against relying on the prediction, or on drafts.
    """

    structure: Structure
    speedup: float
    interval: tuple[float, float] | None
    pilot_cycles: int
    profile: CostProfile
    candidates: tuple[Candidate, ...]
    source: Literal["measured", "cached"]
    note: str | None

    def __str__(self) -> str:
        limits = "" if self.interval is None else " [{:.2f}, {:.2f}]".format(*self.interval)
        said = f"structure auto: {self.structure} (times {self.source}; predicted {self.speedup:.2f}x{limits} plain)"
        return f"{said}\nnote: {self.note.removeprefix('note: ')}" if self.note else said


@torch.inference_mode()
def choose(target: Target, drafter: TreeDrafter, prompts: Sequence[Sequence[int]], config: GenerationConfig) -> Choice:
    """Choose a structure by predicted speed, from times (measured at first use, then kept in the user's cache) and tau.

    Times taken beside other work are used, but not kept.

    Parameters
    ----------
    prompts : sequence of token lists
        Eight of them, spread evenly, are decoded plainly, 48 tokens each: tau holds for texts like these.
    config : GenerationConfig
        How the outputs will be made; its structure does not matter.

    Raises
    ------
    InputError
        No prompt or one that does not fit, or candidates or acceptance that cannot be judged by a plain text.
    """
    if config.candidates == "sampled" or not config.lossless:
        found = "sampled candidates" if config.candidates == "sampled" else config.mode
        wanted = "'top' candidates, accepted exactly: others cannot be judged by the target's own text"
        raise InputError("structure auto", found, wanted)
    if not prompts:
        raise InputError("prompts", "none", "at least one")
    least = LEAST_POSITIONS + max(0, (drafter.depth or 0) - DEPTH)
    if (ends := target.positions_with(drafter)) < least:
        raise InputError("structure auto", f"{ends} positions", f"models of at least {least}")
    options = config.options(config.generator(target.head_device))
    structures = candidates(drafter, options)
    kept = KeptTimes.of(target, drafter, config)
    cached = kept.read(structures)
    warning = None if cached else busy()  # asked first: what follows is a load of its own

    # All before any timing: a prompt that does not fit is refused at once.
    short = replace(config, max_new_tokens=PILOT_TOKENS)
    made = [(list(prompt), plain(target, prompt, short)) for prompt in spread(prompts, PILOT_PROMPTS)]
    texts = [(prompt, g.token_ids, g.stop_reason == "eos") for prompt, g in made]
    times = cached or measure_times(target, drafter, structures, [*texts[0][0], *texts[0][1]], config)
    if not cached and not warning:
        kept.write(times)

    yields = pilot(target, drafter, structures, texts, options)
    rows = []
    for structure, took in times.cycles:
        tau = float(_tau(yields[structure].sum(0)))
        rows.append(Candidate(structure, tau, took, tau * times.baseline_seconds / took))
    best = max(rows, key=lambda row: row.speedup)
    counts = yields[best.structure]
    cycles = int(counts[:, 1].sum())
    notes = [warning] if warning else []
    if cycles < ENOUGH_CYCLES:
        notes.append(f"pilot of {cycles} cycles only")
    if best.speedup < 1:
        notes.append("plain decoding is predicted to be faster")
    return Choice(
        structure=best.structure,
        speedup=best.speedup,
        interval=_interval(counts, times.baseline_seconds / best.cycle_seconds) if cycles else None,
        pilot_cycles=cycles,
        profile=times.profile,
        candidates=tuple(rows),
        source="cached" if cached else "measured",
        note="; ".join(notes) if notes else None,
    )


def _tau(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return tokens a cycle of (…, 2) tokens and cycles; 1 where there is no cycle."""
    return np.where(counts[..., 1] > 0, counts[..., 0] / np.maximum(counts[..., 1], 1), 1.0)


def _interval(counts: NDArray[np.int64], factor: float) -> tuple[float, float] | None:
    """Return the 95 % limits of tau times a factor, never below 0; None for a single text."""
    found = interval(counts, lambda sums: _tau(sums) * factor, counts[:, 1])
    return None if found is None else (max(0.0, found[0]), found[1])


def candidates(drafter: TreeDrafter, options: DraftOptions) -> list[Structure]:
    """Return the structures that are tried: chains first, by length, then trees by nodes."""
    depth = drafter.depth or DEPTH
    found: list[Structure] = [
        ChainStructure(k) for k in range(1, min(drafter.depth or LONGEST_CHAIN, LONGEST_CHAIN) + 1)
    ]
    for total in TOTALS:
        width = max(2, min(10, total // 6))
        found.append(DynamicTree(total, width, depth, width))
    return [structure for structure in found if _makes(drafter, structure, options)]


def _makes(drafter: TreeDrafter, structure: Structure, options: DraftOptions) -> bool:
    try:
        drafter.check(structure, options)
    except InputError:
        return False
    return True


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

    `texts`: Token ids of the target's own; whether the last one ended the output.
    """
    deepest = max(structure.depth for structure in structures)
    longest = max((s for s in structures if isinstance(s, ChainStructure)), key=lambda s: s.length, default=None)
    ends = target.positions_with(drafter)
    sums = {structure: np.zeros((len(texts), 2), np.int64) for structure in structures}
    for index, (prompt, output, ended) in enumerate(texts):
        known = [*prompt, *output]
        begin, end = len(prompt), min(len(known) - (1 if ended else deepest), ends - deepest)
        if begin >= end:
            continue
        text = torch.tensor([*known, *[-1] * deepest], device=target.head_device)
        drafter.start(text[: len(known)][:ends], target.prefill(known[:-1]).features[: ends - 1])
        where = {"known": len(known), "ended": ended, "ends": ends, "vocabulary": target.vocab_size}
        lengths: dict[Structure, list[list[int]]] = {}
        for structure in [longest, *structures] if longest is not None else structures:
            if isinstance(structure, ChainStructure) and longest in lengths:
                # A chain is the beginning of a longer one.
                k = structure.length
                lengths[structure] = [[min(a, k), int(censored and a <= k)] for a, censored in lengths[longest]]
            else:
                lengths[structure] = accepted_lengths(drafter, structure, options, text, range(begin, end), **where)
        for structure in structures:
            at, found = 0, lengths[structure]
            while at < len(found) and not found[at][1]:
                sums[structure][index] += found[at][0] + 1, 1
                at += found[at][0] + 1
    return sums
