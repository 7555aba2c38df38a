"""Speed-ups of forecasts under a measured cost profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gumiho_simulator.forecast import Forecast
from gumiho_theory import ChainStructure, CostProfile, DynamicTree, InputError, Structure


def with_speed(forecasts: Sequence[Forecast], profile: CostProfile) -> dict[str, Any]:
    """Add speed-ups to forecasts and name the fastest.

    Parameters
    ----------
    forecasts
        From `gumiho_simulator.forecast`.
    profile
        Step times of the model pair, seconds.

    Returns
    -------
    dict
        forecasts: one dict each, with speedup, speedup_lo, speedup_hi (over plain decoding, at tau and its
        limits; None where there is no tau, or where the profile was not measured so far, which the note
        then says); best: the supported structure of highest speed-up, or None.
    """
    rows = []
    for one in forecasts:
        row = one.to_json()
        row |= dict.fromkeys(("speedup", "speedup_lo", "speedup_hi"))
        if one.tau is not None:
            try:
                depth, nodes = _size(one)
                for key, value in (("speedup", one.tau), ("speedup_lo", one.lo), ("speedup_hi", one.hi)):
                    row[key] = None if value is None else profile.speedup(value, depth, nodes)
            except InputError as error:
                row["note"] = "; ".join(part for part in (one.note, f"no speed-up: {error}") if part)
        rows.append(row)
    known = [row for row in rows if row["supported"] and row["speedup"] is not None]
    best = max(known, key=lambda row: float(row["speedup"]), default=None)
    return {"forecasts": rows, "best": None if best is None else best["structure"]}


def _size(one: Forecast) -> tuple[int, int]:
    """Return the depth and the number of verified nodes, root included."""
    structure = Structure.parse(one.structure)
    if isinstance(structure, ChainStructure):
        return structure.length, structure.length + 1
    if isinstance(structure, DynamicTree):
        return structure.depth, structure.total
    raise InputError("structure", one.structure, "a chain or a tree of settled size")
