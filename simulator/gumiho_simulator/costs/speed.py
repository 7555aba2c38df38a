"""Speed-ups of forecasts under a cost profile: which length to run, and up to which length drafting pays at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gumiho_simulator.forecasting.forecasts import Forecast
from gumiho_theory import (
    ChainStructure,
    CostProfile,
    DynamicTree,
    InputError,
    StaticTree,
    Structure,
    conditional_to_survival,
)

FloatArray = NDArray[np.float64]

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

    Parameters
    ----------
    speedup, tau, lo, hi
        The estimates, and the limits of tau (bonus included).
    relative_error
        Standard error of a cycle's time in plain steps, as a share of it.

    Returns
    -------
    tuple of float
        Limits; distances add up as squares, on a logarithmic scale.
    """
    spread = _Z * relative_error
    down, up = np.hypot(np.log(tau / lo), spread), np.hypot(np.log(hi / tau), spread)
    return speedup * float(np.exp(-down)), speedup * float(np.exp(up))


def with_speed(forecasts: Sequence[Forecast], profile: CostProfile) -> dict[str, Any]:
    """Add speed-ups to forecasts and name the fastest.

    Parameters
    ----------
    forecasts
        From `gumiho_simulator.forecasting.forecasts`.
    profile
        Step times of the model pair, seconds.

    Returns
    -------
    dict
        forecasts: one dict each, with speedup, speedup_lo, speedup_hi (over plain decoding, at tau and its
        limits, wider where the profile gives its own error; None where there is no tau, or where the profile was
        not measured so far, which the note then says); best: the supported structure of highest speed-up, or
        None; break_even: the longest supported chain that is not slower than plain decoding, or None.
    """
    rows = []
    for one in forecasts:
        row = one.to_json()
        row |= dict.fromkeys(("speedup", "speedup_lo", "speedup_hi"))
        if one.tau is not None:
            try:
                depth, nodes = _size(one)
                row["speedup"] = profile.speedup(one.tau, depth, nodes)
                if one.lo is not None and one.hi is not None:
                    limits = speedup_limits(row["speedup"], one.tau, one.lo, one.hi, profile.relative_error or 0.0)
                    row["speedup_lo"], row["speedup_hi"] = limits
            except InputError as error:
                row["note"] = "; ".join(part for part in (one.note, f"no speed-up: {error}") if part)
        rows.append(row)
    known = [row for row in rows if row["supported"] and row["speedup"] is not None]
    best = max(known, key=lambda row: float(row["speedup"]), default=None)
    lengths = [ChainStructure(int(row["structure"][6:])) for row in known if _pays(row)]
    longest = max(lengths, key=lambda chain: chain.length, default=None)
    return {
        "forecasts": rows,
        "best": None if best is None else best["structure"],
        "break_even": None if longest is None else str(longest),
    }


def _pays(row: dict[str, Any]) -> bool:
    return str(row["structure"]).startswith("chain:") and float(row["speedup"]) >= 1


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


def verdicts(result: dict[str, Any]) -> list[str]:
    """Say in words what `with_speed` found, and how sure it is.

    Parameters
    ----------
    result
        What `with_speed` returned.

    Returns
    -------
    list of str
        Lines for people; none where nothing is known.
    """
    known = [row for row in result["forecasts"] if row["supported"] and row["speedup"] is not None]
    best = next((row for row in known if row["structure"] == result["best"]), None)
    if best is None:
        return []
    lines = [f"fastest of the {len(known)} supported, at their estimates: {best['structure']}"]
    if best["speedup_lo"] is not None:
        others = [r["structure"] for r in known if r is not best and (r["speedup_hi"] or 0) >= best["speedup_lo"]]
        lines[0] += f"; not told apart from it: {', '.join(others)}" if others else ""
    chains = [int(r["structure"][6:]) for r in known if r["structure"].startswith("chain:")]
    if chains and best["structure"] == f"chain:{max(chains)}":
        lines.append("it is the longest chain with support: a longer one may be faster still")
    even = [row["structure"] for row in known if row["speedup"] >= 1]
    if even:
        lines.append(f"not slower than plain decoding, at the estimates: {', '.join(even)}")
    sure = [row["structure"] for row in known if (row["speedup_lo"] or 0) > 1]
    lines.append(f"faster than plain decoding with the whole interval: {', '.join(sure) or 'none'}")
    return lines
