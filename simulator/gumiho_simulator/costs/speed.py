"""Speed-ups of forecasts under a cost profile: which length to run, and up to which length drafting pays at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gumiho_simulator.forecasting.fitting import FitResult
from gumiho_simulator.forecasting.published import forecast_points
from gumiho_simulator.forecasting.tau import Forecast, forecast
from gumiho_theory import (
    ChainStructure,
    CostProfile,
    DynamicTree,
    InputError,
    StaticTree,
    Structure,
    conditional_to_survival,
)
from gumiho_theory.types import FloatArray

_Z = 1.959964  # of a 95 % interval


@dataclass(frozen=True)
class ChainSpeeds:
    """Speed-ups of chains of length 1..D over plain decoding.

    Parameters
    ----------
    tau : ndarray [D]
        Bonus included.
    speedup : ndarray [D]
        Over plain decoding.
    """

    tau: FloatArray
    speedup: FloatArray

    @property
    def best(self) -> int:
        """Length of the largest speed-up; 0, no draft, where none is above 1."""
        return int(self.speedup.argmax()) + 1 if (self.speedup > 1).any() else 0

    @property
    def break_even(self) -> int:
        """Longest length that is not slower than plain decoding; 0 where every one is."""
        return int(np.flatnonzero(self.speedup >= 1).max(initial=-1)) + 1


def chain_speeds(rates: ArrayLike, profile: CostProfile) -> ChainSpeeds:
    """Speed-ups of chains of every length, cut from one vector of rates.

    Parameters
    ----------
    rates : array_like [D]
        Conditional rates, D at least 1. That shorter drafts keep the rates of longer ones is an assumption: `forecast`
        says what it is worth.
    profile
        Step times of the model pair.

    Returns
    -------
    ChainSpeeds
        Of lengths 1..D.

    Raises
    ------
    InputError
        Rates outside [0, 1] or none, or more nodes than the profile covers.
    """
    survival = np.atleast_1d(conditional_to_survival(rates))
    if survival.ndim != 1 or not survival.size:
        raise InputError("rates", f"shape {survival.shape}", "one rate a position, at least one")
    taus = 1.0 + np.cumsum(survival)
    speeds = [profile.speedup(float(tau), length, length + 1) for length, tau in enumerate(taus, start=1)]
    return ChainSpeeds(taus, np.array(speeds))


def speedup_limits(speedup: float, tau: float, lo: float, hi: float, relative_error: float) -> tuple[float, float]:
    """95 % limits of a speed-up whose tau and whose times are both uncertain, and independent of one another.

    `speedup`, `tau`, `lo`, `hi`: The estimates, and the limits of tau (bonus included). `relative_error`: Standard
    error of a cycle's time in plain steps, as a share of it. Returns tuple of float: Limits; distances add up as
    squares, on a logarithmic scale.
    """
    spread = _Z * relative_error
    down, up = np.hypot(np.log(tau / lo), spread), np.hypot(np.log(hi / tau), spread)
    return speedup * float(np.exp(-down)), speedup * float(np.exp(up))


@dataclass(frozen=True)
class ForecastSpeeds:
    """Forecasts with their speed-ups over plain decoding, where times are known.

    Parameters
    ----------
    rows
        One dict a forecast (see `Forecast`). With times also speedup, speedup_lo, speedup_hi: at tau and its limits,
        wider where the profile gives its own error; None where there is no tau, or where the profile was not measured
        so far, which the note then says.
    timed
        Whether times are known.
    """

    rows: tuple[dict[str, Any], ...]
    timed: bool

    @property
    def known(self) -> list[dict[str, Any]]:
        """Rows of supported structures with a speed-up."""
        return [row for row in self.rows if row["supported"] and row.get("speedup") is not None]

    @property
    def best(self) -> str | None:
        """The supported structure of highest speed-up."""
        best = max(self.known, key=lambda row: float(row["speedup"]), default=None)
        return None if best is None else str(best["structure"])

    @property
    def break_even(self) -> str | None:
        """The longest supported chain that is not slower than plain decoding."""
        longest = max((length for length, row in self._chains() if row["speedup"] >= 1), default=None)
        return None if longest is None else f"chain:{longest}"

    def _chains(self) -> list[tuple[int, dict[str, Any]]]:
        named = [(row["structure"].partition(":"), row) for row in self.known]
        return [(int(length), row) for (kind, _, length), row in named if kind == "chain"]

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho forecast --json`` prints: forecasts (the rows); with times also best and break_even."""
        verdict = {"best": self.best, "break_even": self.break_even} if self.timed else {}
        return {"forecasts": list(self.rows), **verdict}

    def verdicts(self) -> list[str]:
        """Say in words what was found, and how sure it is; nothing where nothing is known."""
        known = self.known
        best = next((row for row in known if row["structure"] == self.best), None)
        if best is None:
            return []
        lines = [f"fastest of the {len(known)} supported, at their estimates: {best['structure']}"]
        if best["speedup_lo"] is not None:
            others = [r["structure"] for r in known if r is not best and (r["speedup_hi"] or 0) >= best["speedup_lo"]]
            lines[0] += f"; not told apart from it: {', '.join(others)}" if others else ""
        chains = [length for length, _ in self._chains()]
        if chains and best["structure"] == f"chain:{max(chains)}":
            lines.append("it is the longest chain with support: a longer one may be faster still")
        even = [row["structure"] for row in known if row["speedup"] >= 1]
        if even:
            lines.append(f"not slower than plain decoding, at the estimates: {', '.join(even)}")
        sure = [row["structure"] for row in known if (row["speedup_lo"] or 0) > 1]
        lines.append(f"faster than plain decoding with the whole interval: {', '.join(sure) or 'none'}")
        return lines


def forecast_speeds(
    source: FitResult | Mapping[int, float],
    structures: Sequence[Structure | str],
    profile: CostProfile | None = None,
) -> ForecastSpeeds:
    """Forecast tau of structures, from a fit or from published points, and their speed-ups.

    Parameters
    ----------
    source : FitResult, or mapping of length to tau
        A fit to a log, or published tau (bonus included) of chains.
    structures
        Structures or their text; chains alone where points are given.
    profile
        Step times of the model pair, seconds; without them there are no speed-ups.

    Returns
    -------
    ForecastSpeeds
        One row a structure.

    Raises
    ------
    InputError
        A structure that cannot be read or, from points, is no chain; points that cannot be used.
    """
    if isinstance(source, FitResult):
        return with_speed(forecast(source, structures), profile)
    asked = [one if isinstance(one, Structure) else Structure.parse(one) for one in structures]
    lengths = [one.length for one in asked if isinstance(one, ChainStructure)]
    if len(lengths) < len(asked):
        raise InputError("structures", ", ".join(map(str, asked)), "chains, since points are for chains")
    return with_speed(forecast_points(source, lengths), profile)


def with_speed(forecasts: Sequence[Forecast], profile: CostProfile | None) -> ForecastSpeeds:
    """Add speed-ups to forecasts.

    `forecasts`: From `gumiho_simulator.forecasting`. `profile`: Step times of the model pair, seconds; None: unknown.
    Returns one row a forecast.
    """
    rows = [one.to_json() for one in forecasts]
    for one, row in zip(forecasts, rows, strict=True):
        if profile is None:
            continue
        row |= dict.fromkeys(("speedup", "speedup_lo", "speedup_hi"))
        if one.tau is not None:
            try:
                row["speedup"] = profile.speedup(one.tau, *_size(one))
                if one.lo is not None and one.hi is not None:
                    limits = speedup_limits(row["speedup"], one.tau, one.lo, one.hi, profile.relative_error or 0.0)
                    row["speedup_lo"], row["speedup_hi"] = limits
            except InputError as error:
                row["note"] = "; ".join(part for part in (one.note, f"no speed-up: {error}") if part)
    return ForecastSpeeds(tuple(rows), profile is not None)


def _size(one: Forecast) -> tuple[int, int]:
    """Return the depth and the number of verified nodes, root included."""
    structure = Structure.parse(one.structure)
    if isinstance(structure, ChainStructure):
        return structure.length, structure.length + 1
    if isinstance(structure, DynamicTree):
        return structure.depth, structure.total
    if isinstance(structure, StaticTree):
        return structure.depth, len(structure.paths) + 1
    raise InputError("structure", one.structure, "a chain or a tree of settled size")
