"""Forecasts from published points alone: tau at some draft lengths, nothing about prompts or positions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.forecast import CONVENTION, Forecast
from gumiho_theory import InputError

# Relative half-widths, from the errors of this rule on six published sweeps of draft lengths up to 8: a published
# point is itself good to about 3 %, and each position beyond the last adds 2 % with three points or more (27 of 29
# errors were inside from three points, all 23 from four), 6 % with fewer.
_NOISE, _BETWEEN, _STEP, _STEP_FEW = 0.03, 0.05, 0.02, 0.06
_LONGEST = 512


def parse_points(text: str) -> dict[int, float]:
    """Read points such as "1:1.84,2:2.50,3:2.99".

    Parameters
    ----------
    text
        Comma-separated draft length and tau (bonus included).

    Returns
    -------
    dict
        tau by draft length.

    Raises
    ------
    InputError
        Ill-formed text, a length given twice, or a tau outside [1, length + 1].
    """
    points: dict[int, float] = {}
    for position, part in enumerate(text.split(","), start=1):
        place = f"--tau-by-length, point {position}"
        match = re.fullmatch(r"([0-9]{1,3}):([0-9]{1,9}(\.[0-9]{1,30})?)", part.strip())
        if match is None:
            raise InputError(place, repr(part.strip()), "a draft length and tau, such as 3:2.99")
        length, value = int(match[1]), float(match[2])
        if not 1 <= length <= _LONGEST or length in points:
            raise InputError(place, length, f"a draft length from 1 to {_LONGEST}, once")
        if not 1 <= value <= length + 1:
            raise InputError(place, value, f"a tau (bonus included) from 1 to {length + 1}")
        points[length] = value
    return points


def forecast_points(points: Mapping[int, float], lengths: Sequence[int]) -> tuple[Forecast, ...]:
    """Forecast tau of chains from tau at other lengths.

    Between points (and 0, where tau is 1) tau is interpolated monotonically. Beyond the last, each further
    position adds a constant share of what the one before added, the share that the last two stretches show.

    Parameters
    ----------
    points
        tau (bonus included) by draft length; at least one.
    lengths
        Draft lengths to forecast.

    Returns
    -------
    tuple of Forecast
        tau, lo and hi are always numbers; `supported` is False beyond the last point. The limits are set from
        the errors of this rule on published sweeps, not from the points, which carry no count of prompts.
    """
    known = np.array([0, *sorted(points)])
    values = np.array([1.0, *(points[length] for length in sorted(points))])
    return tuple(_forecast_one(known, values, length) for length in lengths)


def _forecast_one(known: NDArray[np.int64], values: NDArray[np.float64], length: int) -> Forecast:
    last = int(known[-1])
    supported = length <= last
    if length in known:
        value, share, note = float(values[known == length][0]), _NOISE, "as published"
    elif supported:
        value, share, note = _between(known, values, length), _BETWEEN, "interpolated"
    else:
        added, ratio = _tail(known, values)
        value = float(values[-1] + added * np.sum(ratio ** np.arange(1, length - last + 1)))
        share = _NOISE + (_STEP if known.size > 3 else _STEP_FEW) * (length - last)
        note = f"extrapolated beyond length {last}"
    # Noisy points can rise by more than one token a position, which no chain can.
    value = min(value, length + 1.0)
    if length == 0:
        share = 0.0
    return Forecast(
        structure=f"chain:{length}",
        model="points",
        tau=value,
        lo=max(1.0, value * (1 - share)),
        hi=min(length + 1.0, value * (1 + share)),
        supported=supported,
        note=note,
        pmf=None,
        survival=None,
        convention=CONVENTION,
        n_prompts=None,
        new_prompts=None,
        seed=0,
    )


def _between(known: NDArray[np.int64], values: NDArray[np.float64], length: int) -> float:
    from scipy.interpolate import PchipInterpolator

    return float(PchipInterpolator(known, values)(length))


def _tail(known: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[float, float]:
    """Return what the last position added to tau, and by what factor each further one adds less."""
    if known.size == 2:
        # One point: the geometric model's rate a, from tau = 1 + a + ... + a^K, found by bisection.
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if np.sum(middle ** np.arange(known[1] + 1)) < values[1] else (low, middle)
        return float(low ** known[1]), float(low)
    slopes = np.diff(values) / np.diff(known)
    centres = (known[1:] + known[:-1] + 1) / 2
    before, after = float(slopes[-2]), float(slopes[-1])
    if before <= 0 or after <= 0:
        # Noise, or a curve that has come to its end: no further gain can be read off.
        return 0.0, 0.0
    ratio = min(1.0, (after / before) ** (1 / float(centres[-1] - centres[-2])))
    return after * ratio ** float(known[-1] - centres[-1]), ratio
