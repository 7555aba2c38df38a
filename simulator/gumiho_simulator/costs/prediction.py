"""What acceptance rates by position give: tau, the accepted-length distribution, and the speed-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from gumiho_theory import (
    InputError,
    conditional_to_survival,
    expected_accepted,
    length_pmf,
    sensitivity,
    survival_to_conditional,
    tau,
)
from gumiho_theory.json_output import plain
from gumiho_theory.types import FloatArray

Number = float | Fraction


@dataclass(frozen=True)
class Prediction:
    """Everything that rates by position determine, and what is known of the time with them.

    Parameters
    ----------
    conditional, survival : ndarray [D]
        P(position i accepted | all before it were) and P(L >= i). After a survival of 0 conditional rates are
        undefined (nan).
    pmf : ndarray [D + 1]
        P(L = 0..D).
    expected_accepted, tau
        E[L], and tau (bonus included).
    sensitivity : ndarray [D]
        d tau / d p_i; nan at the rate that is 0 and followed by undefined ones.
    serial_steps, cycle_ms, speedup
        Serial draft steps of a cycle, its time in milliseconds, tau plain steps over that time; None without times.
    """

    conditional: FloatArray
    survival: FloatArray
    pmf: FloatArray
    expected_accepted: float
    tau: float
    sensitivity: FloatArray
    serial_steps: int | None = None
    cycle_ms: float | None = None
    speedup: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return one plain value a field, nan as None; what is not known of time is left out."""
        return {name: plain(value) for name, value in vars(self).items() if value is not None}


def predict(
    rates: Sequence[Number],
    survival: bool = False,
    *,
    draft_ms: Sequence[Number] | None = None,
    verify_ms: Number | None = None,
    baseline_ms: Number | None = None,
    serial: int = 2,
) -> Prediction:
    """Compute tau, the accepted-length distribution and, from step times, the speed-up over plain decoding.

    Parameters
    ----------
    rates : [D]
        Conditional rates of positions 1..D, or survival rates P(L >= i).
    survival
        Whether they are survival rates.
    draft_ms
        One serial draft step, and optionally all parallel heads once, milliseconds.
    verify_ms, baseline_ms
        One verification, and one step of plain decoding, milliseconds.
    serial
        Serial steps before the parallel heads; without parallel heads every position is a serial step.

    Returns
    -------
    Prediction
        Without a speed-up where no times are given.

    Raises
    ------
    InputError
        A rate outside [0, 1], or survival rates that rise; some times but not all, more than two draft times, or a
        cycle or a plain step that takes no time.
    """
    given = np.array([float(rate) for rate in rates])
    conditional = survival_to_conditional(given) if survival else given
    undefined = np.isnan(conditional)
    # Nothing survives to an undefined position, so any rate there gives the same distribution of L.
    filled = np.where(undefined, 0.0, conditional)
    slopes = np.array(sensitivity(filled))
    if undefined.any():
        slopes[int(undefined.argmax()) - 1] = np.nan
    found = Prediction(
        conditional=conditional,
        survival=given if survival else conditional_to_survival(given),
        pmf=length_pmf(filled),
        expected_accepted=float(expected_accepted(filled)),
        tau=float(tau(filled)),
        sensitivity=slopes,
    )
    times = {"draft_ms": draft_ms, "verify_ms": verify_ms, "baseline_ms": baseline_ms}
    missing = [name for name, value in times.items() if value is None]
    if draft_ms is not None and verify_ms is not None and baseline_ms is not None:
        return _timed(found, draft_ms, verify_ms, baseline_ms, serial)
    if len(missing) < len(times):
        wanted = "draft_ms, verify_ms and baseline_ms together, or none of them"
        raise InputError("times", f"no {', '.join(missing)}", wanted)
    return found


def _timed(
    found: Prediction, draft_ms: Sequence[Number], verify_ms: Number, baseline_ms: Number, serial: int
) -> Prediction:
    """Add the time of a cycle and the speed-up over plain decoding."""
    if not 1 <= len(draft_ms) <= 2:
        raise InputError("draft_ms", f"{len(draft_ms)} numbers", "one serial step, and optionally the parallel heads")
    depth = found.conditional.size
    parallel = len(draft_ms) == 2 and depth > serial
    steps = serial if parallel else depth
    cycle_ms = float(steps * draft_ms[0] + (draft_ms[1] if parallel else 0) + verify_ms)
    for place, value in (("baseline_ms", float(baseline_ms)), ("time of a cycle", cycle_ms)):
        if value == 0:
            raise InputError(place, "0 ms", "a time above 0")
    return replace(found, serial_steps=steps, cycle_ms=cycle_ms, speedup=found.tau * float(baseline_ms) / cycle_ms)
