"""What is said of one contender: tau, speed and exactness, with intervals that resample whole prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumiho_decoder.measuring.bench.contenders import Turn
from gumiho_decoder.measuring.lossless import count_prompts
from gumiho_decoder.measuring.resampling import interval, speedup, sums_by_prompt
from gumiho_theory import Trace

CONVENTION = "micro, bonus included, complete cycles"


def summed_up(trace: Trace, turns: Sequence[Turn], first: int) -> dict[str, Any]:
    """Return the measured values of a row.

    `turns`: Of the same prompts. `first`: `tau_first` is tau over the cycles that start within so many new tokens of
    their turn. Returns dict: What the cycles say (tau: micro, bonus included, complete cycles), then what the clock
    says: speedups are ratios of tokens a second, wall time with prefill. `lossless` is None where nothing could be
    compared. A value without anything to come from is None, and so are limits from a single prompt.
    """
    tokens, seconds = sum(turn.tokens for turn in turns), sum(turn.seconds for turn in turns)
    return {
        "n_prompts": len({turn.prompt_id for turn in turns}),
        "turns": len(turns),
        "cycles": trace.n_cycles,
        "new_tokens": tokens,
        **tau_of(trace, trace.complete, "tau"),
        "tau_convention": CONVENTION,
        **tau_of(trace, trace.complete & (offsets(trace) < first), "tau_first"),
        "first": first,
        **speedup_over(turns, "plain", "speedup"),
        **speedup_over(turns, "library", "speedup_generate"),
        "tokens_per_second": tokens / seconds if turns else None,
        "draft_ms": 1000 * float(trace.draft_seconds.mean()) if trace.n_cycles else None,
        "verify_ms": 1000 * float(trace.verify_seconds.mean()) if trace.n_cycles else None,
        "mean_nodes": float(trace.nodes.mean()) if trace.n_cycles else None,
        "lossless": lossless(turns),
    }


def offsets(trace: Trace) -> NDArray[np.int64]:
    """Return how many new tokens stood before each cycle's root in its turn: 0 for the first cycle."""
    begins = {(trace.prompt_id[i], trace.turn[i]): trace.position[i] for i in np.flatnonzero(trace.cycle == 0)}
    turns = zip(trace.prompt_id, trace.turn, strict=True)
    return trace.position - np.array([begins[turn] for turn in turns], dtype=np.int64)


def tau_of(trace: Trace, counted: NDArray[np.bool_], name: str) -> dict[str, float | None]:
    """Return tau (micro, bonus included) of some complete cycles as `name`, with its standard error and 95 % limits.

    The error is that of a ratio of sums over prompts, in first order.
    """
    if not counted.any():
        return dict.fromkeys((name, f"{name}_se", f"{name}_lo", f"{name}_hi"))
    values = np.stack([trace.accepted[counted], np.ones(counted.sum())], axis=1)
    sums = sums_by_prompt(trace.prompt_id[counted], values)
    accepted, cycles = sums.T
    mean, n = float(accepted.sum() / cycles.sum()), len(sums)
    error = None
    if n > 1:
        error = float(np.sqrt(n / (n - 1) * ((accepted - mean * cycles) ** 2).sum()) / cycles.sum())
    limits = interval(sums, lambda drawn: drawn[:, 0] / drawn[:, 1], cycles)
    low, high = (None, None) if limits is None else (1 + max(0.0, limits[0]), 1 + limits[1])
    return {name: 1 + mean, f"{name}_se": error, f"{name}_lo": low, f"{name}_hi": high}


def speedup_over(turns: Sequence[Turn], other: str, name: str) -> dict[str, float | None]:
    """Return the tokens a second over those of `plain` or `library` as `name`, with 95 % limits."""
    sizes = [(t.tokens, t.seconds, getattr(t, f"{other}_tokens"), getattr(t, f"{other}_seconds")) for t in turns]
    ratio, limits = speedup([turn.prompt_id for turn in turns], sizes)
    low, high = limits or (None, None)
    return {name: ratio, f"{name}_lo": low, f"{name}_hi": high}


def lossless(turns: Sequence[Turn]) -> dict[str, int] | None:
    """Return how many prompts were checked, equal, tied, different; None where none was checked."""
    counts = count_prompts((turn.prompt_id, turn.verdict) for turn in turns)
    return counts if counts["checked"] else None
