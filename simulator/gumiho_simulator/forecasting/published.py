"""Forecasts from published points alone: tau at some draft lengths, nothing about prompts or positions."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources

import numpy as np

from gumiho_simulator.forecasting.tau import Forecast, Forecasts
from gumiho_theory import InputError
from gumiho_theory.types import FloatArray, IntArray

# Relative half-widths: a published point is itself good to about 3 %, a point read off between two others to 5 %.
_NOISE, _BETWEEN = 0.03, 0.05
_LONGEST = 512
# Of the log of the power; a curve whose later gains vanish or do not fade at all has no best one.
_POWER_RANGE = (-1.5, 2.0)


@cache
def published_sweeps() -> Mapping[str, Mapping[int, float]]:
    """Return the published sweeps, tau (bonus included) by draft length, by source, target, drafter and setting.

    InferenceX (golden acceptance lengths on SPEED-Bench's coding set, Apache-2.0), vLLM issue 20780, and the
    draft-length audit of Jella et al. (2026). Each point is a run of its own, so the curves are noisy.
    ``data/published_curves.csv`` names the source of every point.
    """
    text = (resources.files("gumiho_simulator.forecasting") / "data" / "published_curves.csv").read_text("utf-8")
    curves: dict[str, dict[int, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        parts = (row["source"], row["target"], row["drafter"], row["setting"])
        curves.setdefault(", ".join(filter(None, parts)), {})[int(row["draft_length"])] = float(row["tau"])
    return curves


def published_curves() -> tuple[Mapping[int, float], ...]:
    """Return the published sweeps that later gains are learnt from, without their names; see `published_sweeps`."""
    return tuple(published_sweeps().values())


def parse_points(text: str) -> dict[int, float]:
    """Read tau (bonus included) by draft length from text such as "1:1.84,2:2.50,3:2.99".

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


def forecast_points(
    points: Mapping[int, float], lengths: Sequence[int], curves: Sequence[Mapping[int, float]] | None = None
) -> Forecasts:
    """Forecast tau of chains from tau at other lengths.

    Between points (and 0, where tau is 1) tau is interpolated monotonically. Beyond the last, each further position
    adds a constant share of what the one before added: the share that the last two stretches show, to a power learnt
    from published sweeps, since gains were found to fade faster than at first and the faster the more they had.

    Parameters
    ----------
    points
        tau (bonus included) by draft length; at least one.
    curves
        Sweeps to learn the power from; by default `published_curves`.

    Returns
    -------
    Forecasts
        tau, lo and hi are always numbers; `supported` is False beyond the last point. The limits (95 %) hold the spread
        of the power between published sweeps and the noise of a published point; the points themselves carry no count
        of prompts. With each sweep left out of the learning in turn, 34 of 35 points beyond length 3 were inside, and
        the median error at length 8 was 2.2 %.
    """
    known, values = _curve(points)
    beyond = max(lengths, default=0) > known[-1]
    power = (0.0, 0.0)
    if beyond:
        power = _published_power(min(len(points), 3)) if curves is None else learnt_power(len(points), curves)
    return Forecasts(_forecast_one(known, values, length, power) for length in lengths)


def ratio_points(points: Mapping[int, float], lengths: Sequence[int]) -> tuple[Forecast, ...]:
    """Forecast tau of chains beyond the points by a constant ratio of gains: the plain rule to be measured against.

    Points and lengths as in `forecast_points`; without limits, model "ratio".
    """
    known, values = _curve(points)
    note = f"constant ratio of gains beyond length {known[-1]}"
    return tuple(
        replace(_forecast_one(known, values, n, (0.0, 0.0)), lo=None, hi=None, model="ratio", note=note)
        for n in lengths
    )


@cache
def _published_power(points: int) -> tuple[float, float]:
    return learnt_power(points, published_curves())


def learnt_power(points: int, curves: Sequence[Mapping[int, float]]) -> tuple[float, float]:
    """Learn by what power of the observed share later gains fade: the middle and half-width of its log.

    From `points` points, three standing for all larger numbers, and those curves that have a point up to that length
    and two beyond: the median over the sweeps, since one odd sweep among eight would move their mean, and half of the
    range that a further sweep's lies in (95 %, Student's t).
    """
    from scipy.optimize import minimize_scalar
    from scipy.stats import t

    last, found = min(points, 3), []
    for curve in curves:
        known, values = _curve({length: tau for length, tau in curve.items() if length <= last})
        beyond = np.array(sorted(k for k in curve if k > last))
        if known.size < 2 or beyond.size < 2:
            continue
        wanted = np.array([curve[int(k)] for k in beyond])

        def misfit(
            log_power: float,
            known: IntArray = known,
            values: FloatArray = values,
            beyond: IntArray = beyond,
            wanted: FloatArray = wanted,
        ) -> float:
            made = np.array([_continued(known, values, int(k), log_power) for k in beyond])
            return float(((made / wanted - 1) ** 2).sum())

        found.append(float(minimize_scalar(misfit, bounds=_POWER_RANGE, method="bounded").x))
    n = len(found)
    if n < 2:
        raise InputError("published curves", f"{n} of use", "at least two sweeps that go on beyond the points")
    spread = float(np.std(found, ddof=1)) * float(np.sqrt(1 + 1 / n))
    return float(np.median(found)), float(t.ppf(0.975, n - 1)) * spread


def _forecast_one(known: IntArray, values: FloatArray, length: int, power: tuple[float, float]) -> Forecast:
    last = int(known[-1])
    supported = length <= last
    if supported:
        published = length in known
        value = float(values[known == length][0]) if published else _between(known, values, length)
        share = _NOISE if published else _BETWEEN
        down = up = 0.0 if length == 0 else share * value
        note = "as published" if published else "interpolated"
    else:
        middle, half = power
        value = _continued(known, values, length, middle)
        # The larger the power, the sooner gains fade.
        down = float(np.hypot(value - _continued(known, values, length, middle + half), _NOISE * value))
        up = float(np.hypot(_continued(known, values, length, middle - half) - value, _NOISE * value))
        note = f"extrapolated beyond length {last}"
    # Noisy points can rise by more than one token a position, which no chain can.
    value = min(value, length + 1.0)
    return Forecast(
        structure=f"chain:{length}",
        model="points",
        tau=value,
        lo=max(1.0, value - down),
        hi=min(length + 1.0, value + up),
        supported=supported,
        note=note,
    )


def _curve(points: Mapping[int, float]) -> tuple[IntArray, FloatArray]:
    """Return lengths, 0 first, and tau at each."""
    return np.array([0, *sorted(points)]), np.array([1.0, *(points[length] for length in sorted(points))])


def _continued(known: IntArray, values: FloatArray, length: int, log_power: float) -> float:
    """Return tau at a length beyond the last point."""
    added, ratio = _tail(known, values)
    share = ratio ** np.exp(log_power)
    return float(values[-1] + added * np.sum(share ** np.arange(1, length - int(known[-1]) + 1)))


def _between(known: IntArray, values: FloatArray, length: int) -> float:
    from scipy.interpolate import PchipInterpolator

    return float(PchipInterpolator(known, values)(length))


def _tail(known: IntArray, values: FloatArray) -> tuple[float, float]:
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
