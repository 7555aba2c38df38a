"""`--structure auto`: the draft structure that promises the most tokens a second on this machine and these prompts.

What a cycle takes is timed once and kept on disk: it belongs to the machine and the pair. What it yields belongs to the
prompts: it is read, each time, off a few short texts of the target's own (see `places`).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.logging.places import accepted_lengths, batches, most_places
from gumiho_decoder.loop import plain
from gumiho_decoder.measuring.profile.times import DEPTH, NODES, Bench, device_name, interleaved, measure
from gumiho_decoder.measuring.prompts import spread
from gumiho_decoder.measuring.resampling import interval
from gumiho_decoder.measuring.speed import busy
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, CostProfile, DynamicTree, InputError, Structure
from gumiho_theory.files import read_json, write_json

SCHEMA = "gumiho.auto/2"
LONGEST_CHAIN = 10
TOTALS = (8, 16, 24, 32, 48, 60)
PROMPTS = 8
PILOT_TOKENS = 48
ENOUGH_CYCLES = 30
LEAST_POSITIONS = 32
_REPEATS = 9
_CACHE_BYTES = 1 << 20


@dataclass(frozen=True)
class Times:
    """What steps of a pair take on a machine: all that is kept on disk.

    Attributes
    ----------
    baseline_seconds : float
        One step of plain decoding.
    cycles : tuple of (Structure, float)
        Of each candidate, the seconds of a whole cycle.
    profile : CostProfile
    """

    baseline_seconds: float
    cycles: tuple[tuple[Structure, float], ...]
    profile: CostProfile

    def to_json(self) -> dict[str, Any]:
        """Return the times as JSON values."""
        return {
            "baseline_seconds": self.baseline_seconds,
            "cycles": [{"structure": structure.to_json(), "seconds": took} for structure, took in self.cycles],
            "profile": self.profile.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Times:
        """Read what `to_json` returned; InputError, KeyError, TypeError or AttributeError if it is something else."""
        rows = tuple((Structure.from_json(row["structure"]), _above_0(row, "seconds")) for row in data["cycles"])
        return cls(_above_0(data, "baseline_seconds"), rows, CostProfile.from_json(data["profile"]))


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
    if (ends := _ends(target, drafter)) < least:
        raise InputError("structure auto", f"{ends} positions", f"models of at least {least}")
    options = config.options(config.generator(target.head_device))
    structures = candidates(drafter, options)
    key = _key(target, drafter, config)
    path = _cache_path(key)
    cached = _cached(path, key, structures)
    warning = None if cached else busy()  # asked first: what follows is a load of its own

    # All before any timing: a prompt that does not fit is refused at once.
    short = replace(config, max_new_tokens=PILOT_TOKENS)
    made = [(list(prompt), plain(target, prompt, short)) for prompt in spread(prompts, PROMPTS)]
    texts = [(prompt, g.token_ids, g.stop_reason == "eos") for prompt, g in made]
    times = cached or _measured(target, drafter, structures, [*texts[0][0], *texts[0][1]], config)
    if not cached and not warning and path is not None:
        _keep(path, key, times)

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


def _measured(
    target: Target,
    drafter: TreeDrafter,
    structures: Sequence[Structure],
    text: Sequence[int],
    config: GenerationConfig,
) -> Times:
    """Time plain steps, cycles behind a text of at least 2 tokens, and the parts of a cycle."""
    ends = _ends(target, drafter)
    room = ends - max(structure.depth for structure in structures)
    # It ends as it begins: so n-grams find something to draft, whatever the text is.
    bench = Bench(target, drafter, [*text[: room - 4], *text[:4]], config)
    parts = {None: bench.step} | {structure: partial(bench.cycle, structure) for structure in structures}
    seconds = interleaved(parts, _REPEATS)

    nodes = [n for n in NODES if n <= min(TOTALS[-1] + 4, ends // 2)]
    context = min(128, ends - max(nodes[-1], 1 + (drafter.depth or DEPTH)))
    profile = measure(target, drafter, context=context, nodes=nodes, repeats=5)
    return Times(seconds[None], tuple((structure, seconds[structure]) for structure in structures), profile)


def _ends(target: Target, drafter: TreeDrafter) -> int:
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
    ends = _ends(target, drafter)
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


def _key(target: Target, drafter: TreeDrafter, config: GenerationConfig) -> str:
    """Return a digest of all that the times depend on."""
    shape = getattr(drafter, "config", None)
    facts = {
        "target": [target.name, target.config.to_dict()],
        "drafter": [drafter.name, drafter.method, asdict(shape) if is_dataclass(shape) else None, drafter.fingerprint],
        "machine": [device_name(target), str(target.dtype), torch.get_num_threads(), torch.__version__],
        "sampling": [config.temperature, config.top_k, config.top_p],
        "calibration": None if config.calibration is None else config.calibration.to_json(),
        "budget": None if config.budget is None else config.budget.to_json(),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def _cache_path(key: str) -> Path | None:
    """Return where the times are kept; None where the user has no home."""
    try:
        base = os.environ.get("XDG_CACHE_HOME", "")
        folder = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    except RuntimeError:
        return None
    return folder / "gumiho" / f"auto-{key}.json"


def _cached(path: Path | None, key: str, structures: Sequence[Structure]) -> Times | None:
    """Return the times on disk; None where there are none of just these structures."""
    try:
        data = {} if path is None else read_json(path, _CACHE_BYTES)
        if data.get("schema") == SCHEMA and data.get("key") == key:
            times = Times.from_json(data)
            return times if [structure for structure, _ in times.cycles] == list(structures) else None
    except (InputError, AttributeError, KeyError, TypeError):
        pass  # unreadable, or somebody else's: it is measured anew
    return None


def _keep(path: Path, key: str, times: Times) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"schema": SCHEMA, "key": key, **times.to_json()})
    except (InputError, OSError):
        pass  # a home that cannot be written: next time it is measured anew


def _above_0(data: Mapping[str, Any], name: str) -> float:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise InputError(name, repr(value), "a number above 0")
    return float(value)
