"""Rates by position, the accepted-length distribution, and the time of a cycle: the figures of the demo's report.

Intervals are 95 %, clustered by prompt, and drawn wherever a quantity was estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gumiho_simulator.figures.axes import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    error_bars,
    legend_above,
    names_at_side,
    new_axes,
)
from gumiho_simulator.forecasting.intervals import Interval
from gumiho_theory.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (5.6, 3.8)  # of a new figure, inches
_BARS: dict[str, Any] = {"elinewidth": 1.6, "capsize": 3}


def plot_rates(conditional: Interval, survival: Interval, ax: Axes | None = None) -> Axes:
    """Draw conditional and survival rates by draft position.

    Parameters
    ----------
    conditional, survival : Interval, arrays [D]
        P(position accepted, given all earlier ones) and P(L >= position), pooled over cycles (micro).
    """
    ax = ax or new_axes(*_SIZE)
    position = np.arange(1, conditional.estimate.size + 1)
    series = (
        (conditional, -0.07, BLUE, "o", "-", "conditional: accepted, given all before"),
        (survival, 0.07, ORANGE, "s", "--", "survival: accepted up to here, P(L ≥ i)"),
    )
    for interval, shift, colour, marker, line, label in series:
        x = position + shift
        ax.plot(x, interval.estimate, line, color=colour, linewidth=1.6, alpha=0.75)
        drawn: dict[str, Any] = {"fmt": marker, "color": colour, "label": label, **_BARS}
        error_bars(ax, x, interval.estimate, interval.low, interval.high, **drawn)
    ax.set(xlabel="draft position i", ylabel="acceptance rate", ylim=(0, 1.02))
    ax.set_xlim(0.6, position.size + 0.4)
    ax.set_xticks(position)
    legend_above(ax)
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
    """
    ax = ax or new_axes(*_SIZE)
    length = np.arange(measured.estimate.size)
    label = "measured, held-out prompts (95 %)"
    ax.bar(length, measured.estimate, width=0.72, color=BLUE, alpha=0.45, label=label)
    error_bars(ax, length, measured.estimate, measured.low, measured.high, fmt="none", ecolor=BLUE, **_BARS)
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
    legend_above(ax)
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
    """
    ax = ax or new_axes(*_SIZE)
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
            label = "plain decoding" if row == 1 else None
            ax.barh(row, rows[-1], height=0.56, color=GREEN, alpha=0.85, label=label)
            names.append("plain:\n1 token" if row == 1 else f"plain:\n{tokens:.2f} tokens")
    margin = 0.015 * max(rows)
    for row, width in enumerate(rows):
        above = max((high - mean for mean, _, high in parts.values() if np.isfinite(high)), default=0.0)
        ax.text(width + margin + (above if row == 0 else 0.0), row, f"{width:.2f} ms", va="center", ha="left")
    ax.set_yticks(range(len(rows)), names)
    ax.invert_yaxis()
    names_at_side(ax)
    ax.set(xlabel="milliseconds (mean; bars: 95 %, by prompt)", xlim=(0, max(rows) * 1.2))
    legend_above(ax, columns=2)
    return ax
