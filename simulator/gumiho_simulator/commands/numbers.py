"""Numbers as people type them: decimals and fractions, read exactly."""

from __future__ import annotations

from collections.abc import Mapping
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
from gumiho_theory.theorem.exact import to_exact


def parse_numbers(place: str, text: str) -> list[Fraction]:
    """Read comma-separated decimals and fractions.

    Parameters
    ----------
    place
        What an error names.
    text
        Such as "0.81, 3/4"; at most 512 numbers, none negative.

    Returns
    -------
    list of Fraction
        The exact values.

    Raises
    ------
    InputError
        Text that is no such list; the message gives the position, counted from 1.
    """
    numbers = to_exact(text, place)
    for position, number in enumerate(numbers, start=1):
        if number < 0:
            raise InputError(f"{place}, position {position}", float(number), "a number of at least 0")
    return list(numbers)


def predict_rates(numbers: list[Fraction], survival: bool) -> dict[str, Any]:
    """Compute everything that per-position rates determine.

    Parameters
    ----------
    numbers
        Conditional rates of positions 1..D, or survival rates P(L >= i).
    survival
        Whether the numbers are survival rates.

    Returns
    -------
    dict
        conditional, survival [D], pmf of L = 0..D, expected_accepted (no bonus), tau (bonus included),
        sensitivity (d tau / d p_i, [D]). After a survival of 0 the conditional rates are undefined (nan),
        and so is the sensitivity to the rate that is 0.

    Raises
    ------
    InputError
        A rate outside [0, 1], or survival rates that rise.
    """
    for position, number in enumerate(numbers, start=1):
        if number > 1:
            raise InputError(f"--rates, position {position}", float(number), "a rate in [0, 1]")
    given = np.array([float(number) for number in numbers])
    conditional = survival_to_conditional(given) if survival else given
    undefined = np.isnan(conditional)
    # Nothing survives to an undefined position, so any rate there gives the same law of L.
    filled = np.where(undefined, 0.0, conditional)
    slopes = np.array(sensitivity(filled))
    if undefined.any():
        slopes[int(undefined.argmax()) - 1] = np.nan
    return {
        "conditional": conditional,
        "survival": given if survival else conditional_to_survival(given),
        "pmf": length_pmf(filled),
        "expected_accepted": float(expected_accepted(filled)),
        "tau": float(tau(filled)),
        "sensitivity": slopes,
    }


def predict_speed(
    draft_ms: list[Fraction],
    verify_ms: Fraction,
    baseline_ms: Fraction,
    serial: int,
    result: Mapping[str, Any],
) -> dict[str, Any]:
    """Add the time of a cycle and the speed-up over plain decoding.

    Parameters
    ----------
    draft_ms
        One serial draft step, and optionally all parallel heads once, milliseconds.
    verify_ms, baseline_ms
        One verification, and one step of plain decoding, milliseconds.
    serial
        Serial steps before the parallel heads; without parallel heads every position is a serial step.
    result
        From `predict_rates`.

    Returns
    -------
    dict
        serial_steps, cycle_ms, speedup (tau plain steps for each cycle's time).

    Raises
    ------
    InputError
        Not one or two draft times, or a cycle or a plain step that takes no time.
    """
    if len(draft_ms) > 2:
        raise InputError("--draft-ms", f"{len(draft_ms)} numbers", "one serial step, and optionally the parallel heads")
    depth = len(result["conditional"])
    parallel = len(draft_ms) == 2 and depth > serial
    steps = serial if parallel else depth
    cycle_ms = float(steps * draft_ms[0] + (draft_ms[1] if parallel else 0) + verify_ms)
    for place, value in (("--baseline-ms", float(baseline_ms)), ("time of a cycle", cycle_ms)):
        if value == 0:
            raise InputError(place, "0 ms", "a time above 0")
    return {
        "serial_steps": steps,
        "cycle_ms": cycle_ms,
        "speedup": result["tau"] * float(baseline_ms) / cycle_ms,
    }
