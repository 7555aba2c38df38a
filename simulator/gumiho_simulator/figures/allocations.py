"""An allocation search drawn: tau against cycle time with its front, and any quantity by split of the heads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gumiho_simulator.allocating.heads import Allocation, Allocations
from gumiho_simulator.figures.axes import (
    BLUE,
    GREY,
    INK,
    MUTED,
    ORANGE,
    SERIES,
    error_bars,
    legend_above,
    new_axes,
)
from gumiho_simulator.figures.file import write_figure
from gumiho_theory import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUANTITIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tau": ("tau (bonus included, micro)", ("lo", "hi")),
    "speedup": ("speedup over plain decoding", ("speedup_lo", "speedup_hi")),
    "cycle_seconds": ("milliseconds of a cycle, by the profile", ()),
}
_SIZE = (6.4, 4.4)  # of a new figure, inches


def plot_front(found: Allocations, ax: Axes | None = None) -> Axes:
    """Draw tau against the time of a cycle, with 95 % intervals of tau where there are any.

    Rays through the origin hold allocations of equal speed; the one drawn is that of the best. The front is named:
    serial steps x layers of each + parallel heads.

    Parameters
    ----------
    found
        Allocations under a profile.
    """
    ax = ax or new_axes(*_SIZE)
    on_front = set(map(id, found.front))
    beaten = [row for row in found.rows if id(row) not in on_front]
    if beaten:
        _points(ax, beaten, color=GREY, label="beaten in tau and time by another")
    ax.plot([_ms(row) for row in found.front], [row.tau for row in found.front], color=BLUE, linewidth=1.6, alpha=0.75)
    _points(ax, list(found.front), color=BLUE, label="front")
    best = found.best
    ax.plot(
        _ms(best),
        best.tau,
        "D",
        color=ORANGE,
        markersize=8,
        markeredgecolor=INK,
        markeredgewidth=0.8,
        zorder=4,
        label=f"fastest, {best.speedup:.2f}x plain decoding: {best}",
    )
    right = 1.06 * max(_ms(row) for row in found.rows)
    equal = [0, right * best.tau / _ms(best)]
    ax.plot([0, right], equal, color=MUTED, linewidth=1, linestyle=(0, (4, 2)), zorder=0, label="equally fast")
    for number, row in enumerate(found.front):  # names take turns in height: neighbours on the front are often close
        ax.annotate(
            row.heads,
            (_ms(row), row.tau if row.hi is None else row.hi),
            (0, 3 + 9 * (number % 2)),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=MUTED,
        )
    heights = [height for row in found.rows for height in (row.tau, row.lo, row.hi) if height is not None]
    times = [_ms(row) for row in found.rows]
    margin_x, margin_y = (max(0.08 * np.ptp(values), 0.02 * max(values)) for values in (times, heights))
    ax.set(
        xlabel="milliseconds of a cycle, by the profile",
        ylabel="tau (bonus included)",
        xlim=(min(times) - margin_x, max(times) + margin_x),
        ylim=(min(heights) - margin_y, max(heights) + margin_y),
    )
    legend_above(ax)
    return ax


def plot_by_split(found: Allocations, quantity: str, ax: Axes | None = None) -> Axes:
    """Draw a quantity against the split of the heads, a line for each number of layers of a serial step.

    Parameters
    ----------
    found
        Allocations under a profile.
    quantity
        ``tau`` (bonus included, micro), ``speedup`` (over plain decoding), both with 95 % intervals where there are
        any, or ``cycle_seconds``, drawn in milliseconds.

    Raises
    ------
    InputError
        Another quantity.
    """
    if quantity not in _QUANTITIES:
        raise InputError("quantity", repr(quantity), " or ".join(_QUANTITIES))
    ax = ax or new_axes(*_SIZE)
    label, limits = _QUANTITIES[quantity]
    scale = 1000.0 if quantity == "cycle_seconds" else 1.0
    layers = sorted({row.serial_layers or 0 for row in found.rows})
    splits = sorted({(row.serial, row.parallel) for row in found.rows})
    for number, count in enumerate(layers):
        own = (row for row in found.rows if (row.serial_layers or 0) == count)
        rows = sorted(own, key=lambda row: (row.serial, row.parallel))
        values = np.array([scale * getattr(row, quantity) for row in rows])
        low, high = [[getattr(row, name) for row in rows] for name in limits] or [[None] * len(rows)] * 2
        shift = 0.06 * (number - (len(layers) - 1) / 2)
        place = [splits.index((row.serial, row.parallel)) + shift for row in rows]
        colour, marker = SERIES[number % len(SERIES)]
        name = f"{count} layer{'s' * (count > 1)}" if count else "no serial step, or layers not said"
        error_bars(ax, place, values, low, high, fmt=f"-{marker}", color=colour, linewidth=1.4, label=name)
    ax.set_xticks(range(len(splits)), [f"{serial} + {parallel}" for serial, parallel in splits])
    ax.set(xlabel="serial steps + parallel heads", ylabel=label)
    legend_above(ax, columns=3)
    return ax


def write_front(found: Allocations, path: Path) -> None:
    """Write `plot_front` to a file; see `write_figure`."""
    write_figure(path, _SIZE, lambda figure: plot_front(found, figure.subplots()))


def _points(ax: Axes, rows: list[Allocation], **look: Any) -> None:
    low, high = [row.lo for row in rows], [row.hi for row in rows]
    error_bars(ax, [_ms(row) for row in rows], [row.tau for row in rows], low, high, fmt="o", **look)


def _ms(row: Allocation) -> float:
    return 1000 * row.cycle_seconds
