"""What drafting costs as a profile holds it, fitted to the times of drafting deeper and deeper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_LEAST = 1e-9  # what parallel heads cost at least, in seconds: 0 would say that the drafter has none


class DraftCosts(NamedTuple):
    """Draft costs of a profile: seconds of any draft, of each serial step, of the parallel heads; and the steps."""

    fixed: float
    serial: float
    parallel: float
    serial_steps: int


def fit_draft(seconds: Sequence[float], serial_steps: int | None) -> DraftCosts:
    """Find the draft costs of a profile whose `draft_seconds` come nearest to what was measured.

    `seconds`: Time of drafting to depth 1, 2, ..., D. `serial_steps`: As the drafter has them. None: all positions are
    serial steps, or, where one cost for any depth fits better than a cost a step, all are drafted at once (n-grams:
    looking up costs, a longer find does not). Returns by least squares, none below 0. The first step's surplus (taking
    in the accepted tokens) is `fixed`; a single serial step keeps it, since nothing tells the two apart.
    """
    from scipy.optimize import nnls

    measured = np.asarray(seconds, dtype=np.float64)
    depths = np.arange(1, len(measured) + 1)
    each = float(depths @ measured / (depths @ depths))
    if serial_steps is None and ((measured - measured.mean()) ** 2).sum() < ((measured - each * depths) ** 2).sum():
        return DraftCosts(0.0, 0.0, float(measured.mean()), 0)
    early = len(measured) if serial_steps is None else min(serial_steps, len(measured))
    late = depths > early
    columns = np.stack([np.full(len(depths), float(early > 1)), np.minimum(depths, early), late], axis=1)
    fixed, serial, parallel = map(float, nnls(columns, measured)[0])
    return DraftCosts(fixed, serial, max(parallel, _LEAST) if late.any() else 0.0, early)


def head_seconds(seconds: Sequence[float]) -> float:
    """Return what one more parallel head takes, by least squares: of drafting with 1, 2, … of them. Never below 0."""
    return max(0.0, float(np.polyfit(np.arange(len(seconds)), seconds, 1)[0]))
