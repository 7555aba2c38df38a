"""Whether other work takes this machine's cores, so that timings mean little."""

from __future__ import annotations

import os
import time
from pathlib import Path


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
