"""Figures of the report and the notebooks: each function takes data and an Axes and returns the Axes.

Intervals are 95 %, clustered by prompt, and drawn wherever a quantity was estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.forecasting.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

# The report replaces INK, MUTED, BLUE and GREEN by the page's colours: one figure for light and dark pages.
INK = "#1c2024"
MUTED = "#60646c"
# From seaborn's colour-blind palette.
BLUE, ORANGE, GREEN, GREY = "#0173b2", "#de8f05", "#029e73", "#949494"
_SIZE = (5.6, 3.8)  # of a new figure, inches


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


def plot_rates(conditional: Interval, survival: Interval, ax: Axes | None = None) -> Axes:
    """Draw conditional and survival rates by draft position.

    Parameters
    ----------
    conditional, survival : Interval, arrays [D]
        P(position accepted, given all earlier ones) and P(L >= position), pooled over cycles (micro).
    ax
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ax = ax if ax is not None else new_axes(_SIZE)
    position = np.arange(1, conditional.estimate.size + 1)
    series = (
        (conditional, -0.07, BLUE, "o", "-", "conditional: accepted, given all before"),
        (survival, 0.07, ORANGE, "s", "--", "survival: accepted up to here, P(L ≥ i)"),
    )
    for interval, shift, colour, marker, line, label in series:
        x = position + shift
        ax.plot(x, interval.estimate, line, color=colour, linewidth=1.6, alpha=0.75)
        ax.errorbar(
            x,
            interval.estimate,
            yerr=_bars(interval),
            fmt=marker,
            color=colour,
            markersize=5.5,
            elinewidth=1.6,
            capsize=3,
            label=label,
        )
    ax.set(xlabel="draft position i", ylabel="acceptance rate", ylim=(0, 1.02))
    ax.set_xlim(0.6, position.size + 0.4)
    ax.set_xticks(position)
    _legend_above(ax)
    return ax


def plot_length_distribution(
    predicted: Sequence[float] | FloatArray, measured: Interval, ax: Axes | None = None
) -> Axes:
    """Draw the accepted-length distribution, forecast and measured.

    Parameters
    ----------
    predicted : [D + 1]
        P(L = 0..D), L without the bonus token.
    measured : Interval, arrays [D' + 1]
        The same from held-out complete cycles, with limits; may be shorter or longer than the forecast.
    ax
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ax = ax if ax is not None else new_axes(_SIZE)
    length = np.arange(measured.estimate.size)
    ax.bar(
        length,
        measured.estimate,
        width=0.72,
        color=BLUE,
        alpha=0.45,
        label="measured, held-out prompts (95 %)",
    )
    ax.errorbar(length, measured.estimate, yerr=_bars(measured), fmt="none", ecolor=BLUE, elinewidth=1.6, capsize=3)
    ax.plot(
        np.arange(len(predicted)),
        predicted,
        "D",
        color=ORANGE,
        markersize=6.5,
        markeredgecolor=INK,
        markeredgewidth=0.8,
        label="forecast from the other prompts",
    )
    ax.set(xlabel="accepted draft tokens L in a cycle (bonus token not counted)", ylabel="share of cycles")
    ax.set_xticks(np.arange(max(len(predicted), length.size)))
    ax.set_ylim(bottom=0)
    _legend_above(ax)
    return ax


def plot_cycle_time(
    parts: Mapping[str, tuple[float, float, float]],
    plain_step_ms: float | None,
    tau: float | None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the time of one cycle by part, beside plain decoding.

    Parameters
    ----------
    parts
        Name of each part (draft, verify, other) and its mean with 95 % limits, milliseconds a cycle; nan
        limits are not drawn.
    plain_step_ms
        One step of plain decoding in milliseconds; None when not measured.
    tau
        Tokens a cycle yields (bonus included, micro), for the time plain decoding takes for as many; None
        to leave it out.
    ax
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    ax = ax if ax is not None else new_axes(_SIZE)
    end = 0.0
    names = ["one cycle" if tau is None else f"one cycle:\n{tau:.2f} tokens"]
    colours = {"draft": ORANGE, "verify": BLUE, "other": GREY}
    total = sum(mean for mean, _, _ in parts.values())
    for name, (mean, low, high) in parts.items():
        colour = colours.get(name, GREEN)
        ax.barh(0, mean, left=end, height=0.56, color=colour, alpha=0.85, label=f"{name} {mean:.2f} ms")
        if np.isfinite(low) and np.isfinite(high):
            error = [[end + mean - (end + low)], [high - mean]]
            ax.errorbar(end + mean, 0, xerr=error, fmt="none", ecolor=INK, elinewidth=1.5, capsize=4)
        end += mean
    rows = [total]
    if plain_step_ms is not None:
        for tokens in (1.0, tau):
            if tokens is None:
                continue
            row = len(rows)
            rows.append(plain_step_ms * tokens)
            ax.barh(
                row,
                rows[-1],
                height=0.56,
                color=GREEN,
                alpha=0.85,
                label="plain decoding" if row == 1 else None,
            )
            names.append("plain:\n1 token" if row == 1 else f"plain:\n{tokens:.2f} tokens")
    margin = 0.015 * max(rows)
    for row, width in enumerate(rows):
        above = max((high - mean for mean, _, high in parts.values() if np.isfinite(high)), default=0.0)
        ax.text(width + margin + (above if row == 0 else 0.0), row, f"{width:.2f} ms", va="center", ha="left")
    ax.set_yticks(range(len(rows)), names)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.grid(True, axis="x")
    ax.set(xlabel="milliseconds (mean; bars: 95 %, by prompt)", xlim=(0, max(rows) * 1.2))
    ax.tick_params(axis="y", length=0)
    _legend_above(ax, columns=2)
    return ax


def _bars(interval: Interval) -> FloatArray:
    bars = np.stack([interval.estimate - interval.low, interval.high - interval.estimate])
    return np.maximum(np.nan_to_num(bars), 0.0)


def _legend_above(ax: Axes, columns: int = 1) -> None:
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns, borderaxespad=0.2, handletextpad=0.6)


def new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a new figure in the shared style; width and height in inches."""
    import matplotlib.pyplot as plt

    with plt.rc_context(style()):
        axes: Axes = plt.subplots(figsize=size, layout="constrained")[1]
    return axes
