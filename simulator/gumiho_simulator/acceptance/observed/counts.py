"""What both models ask of the counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumiho_theory import AcceptanceCounts, InputError

FloatArray = NDArray[np.float64]


def positions(counts: AcceptanceCounts) -> tuple[FloatArray, FloatArray]:
    """Return the cycles at risk and accepted by prompt and draft position, as floats.

    Parameters
    ----------
    counts
        Counts by prompt.

    Returns
    -------
    at_risk, accepted : ndarray [G, D]
        Numbers of cycles.

    Raises
    ------
    InputError
        The counts lack positions, or no cycle was ever at risk.
    """
    if counts.at_risk is None or counts.accepted is None:
        raise InputError("counts", "totals without draft positions", "cycles at risk and accepted by position")
    at_risk = np.asarray(counts.at_risk, dtype=np.float64)
    accepted = np.asarray(counts.accepted, dtype=np.float64)
    if not at_risk.size or not at_risk.sum():
        raise InputError("counts", "no cycle at risk", "at least one cycle with a drafted position")
    return at_risk, accepted


def binomial_log_likelihood(at_risk: FloatArray, accepted: FloatArray, rates: FloatArray) -> float:
    """Return sum of k log r + (n - k) log(1 - r), with 0 log 0 = 0, over positions.

    Parameters
    ----------
    at_risk, accepted : ndarray [D]
        Numbers of cycles n and k.
    rates : ndarray [D]
        Conditional rates; ignored where n = 0.

    Returns
    -------
    float
        Nats; -inf when a rate of 0 or 1 is contradicted.
    """
    refused = at_risk - accepted
    with np.errstate(divide="ignore", invalid="ignore"):
        won = np.where(accepted > 0, accepted * np.log(rates), 0.0)
        lost = np.where(refused > 0, refused * np.log1p(-rates), 0.0)
    return float(won.sum() + lost.sum())
