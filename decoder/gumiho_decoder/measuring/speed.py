"""Tokens per second and speedups of a run, with intervals that resample whole prompts."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gumiho_decoder.cycle import Generation
from gumiho_decoder.measuring.resampling import speedup_interval, sums_by_prompt


def speed(outputs: Sequence[Any]) -> dict[str, Any]:
    """Return tokens per second and speedups of outputs (`run.Output`): ratios of whole wall times, prefill included.

    Returns
    -------
    dict
        `tokens_per_second`; for `plain` and `library` also `…_tokens_per_second`, `…_speedup` and `…_speedup_ci`, None
        where not measured. The interval (95 %, prompts resampled; None for a single prompt) covers how prompts differ,
        not what else the machine was doing.
    """
    result: dict[str, Any] = {"tokens_per_second": _rate([o.speculative for o in outputs])}
    for name in ("plain", "library"):
        pairs = [(o.prompt_id, o.speculative, getattr(o, name)) for o in outputs if getattr(o, name) is not None]
        theirs = _rate([pair[2] for pair in pairs]) if pairs else None
        result[f"{name}_tokens_per_second"] = theirs
        result[f"{name}_speedup"] = _rate([pair[1] for pair in pairs]) / theirs if pairs else None
        result[f"{name}_speedup_ci"] = _interval(pairs)
    return result


def _rate(made: Sequence[Generation]) -> float:
    return sum(len(m.token_ids) for m in made) / sum(m.seconds for m in made)


def _interval(pairs: Sequence[tuple[str, Generation, Generation]]) -> list[float] | None:
    if not pairs:
        return None
    found = speedup_interval(
        sums_by_prompt(
            (prompt, (len(ours.token_ids), ours.seconds, len(theirs.token_ids), theirs.seconds))
            for prompt, ours, theirs in sorted(pairs, key=lambda pair: pair[0])
        )
    )
    return None if found is None else list(found)


def busy() -> str | None:
    """Return a warning where other work takes this machine's cores, so that timings mean little; else None."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    others = _running()
    if others <= 0.5:
        return None
    return f"note: other work is running ({others:.1f} processes on {cores} cores): timings and speedups mean little"


def _running() -> float:
    """Return how many other threads want to run, on average over a fifth of a second; 0 where nothing tells.

    The usual load is an average over a minute, and so holds this program's own last run.
    """
    counts = []
    for _ in range(5):
        try:
            # "0.20 0.18 0.12 1/80 11206": the fourth field counts those that run now, this one among them.
            counts.append(int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0]) - 1)
        except (OSError, ValueError, IndexError):
            return 0.0
        time.sleep(0.04)
    return sum(counts) / len(counts)
