"""What all figures share: colours, style, new axes, error bars, legends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The report replaces INK, MUTED, BLUE and GREEN by the page's colours: one figure for light and dark pages.
INK = "#1c2024"
MUTED = "#60646c"
# From seaborn's colour-blind palette.
BLUE, ORANGE, GREEN, PINK, SKY, GREY = "#0173b2", "#de8f05", "#029e73", "#cc78bc", "#56b4e9", "#949494"
SERIES = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "D"), (PINK, "^"), (SKY, "v"), (GREY, "P"))
"""Colour and marker of the series of a figure, in order."""


def style() -> dict[Any, Any]:
    """Matplotlib settings of every figure here, for ``matplotlib.rc_context``.

    Returns
    -------
    dict
        Settings: seaborn's white style, quiet spines, no background.
    """
    import seaborn

    ink = {key: INK for key in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color")}
    return {
        **seaborn.axes_style("ticks"),
        **ink,
        "axes.edgecolor": MUTED,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": MUTED,
        "grid.alpha": 0.22,
        "grid.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "font.size": 10.5,
        "axes.labelsize": 10.5,
        "patch.force_edgecolor": False,
        "legend.frameon": False,
        "legend.fontsize": 10,
    }


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure in the shared style; width and height in inches."""
    import matplotlib.pyplot as plt

    with plt.rc_context(style()):
        axes: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return axes


def error_bars(ax: Axes, place: ArrayLike, value: ArrayLike, low: Any, high: Any, **look: Any) -> None:
    """Draw estimates with their limits.

    `ax`: Where to draw. `place`, `value` (array_like [N]): Where each estimate stands, and the estimate. `low`, `high`
    (array_like [N]): Its limits; None or nan for none. `**look`: Settings of ``Axes.errorbar``: fmt, color, label, …;
    and `across`: whether values go from left to right.
    """
    across = look.pop("across", False)
    values, ends = np.asarray(value, dtype=np.float64), np.array([low, high], dtype=np.float64)
    bars = np.maximum(np.nan_to_num([values - ends[0], ends[1] - values]), 0.0)
    drawn = {"markersize": 5.5, "elinewidth": 1.4, "capsize": 2.5, **look}
    if across:
        ax.errorbar(value, place, xerr=bars, **drawn)
    else:
        ax.errorbar(place, value, yerr=bars, **drawn)


def legend_above(ax: Axes, columns: int = 1) -> None:
    """Put the legend above the axes, from the left."""
    look = {"borderaxespad": 0.2, "handletextpad": 0.6, "frameon": False}
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, **look)


def names_at_side(ax: Axes) -> None:
    """Let the vertical axis hold names: no ticks and no grid there, the grid along the values."""
    ax.grid(False, axis="y")
    ax.grid(True, axis="x")
    ax.tick_params(axis="y", length=0)
