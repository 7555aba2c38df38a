"""Forecasts drawn: the accepted-length distribution, tau by structure beside what was measured, residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from gumiho_simulator.figures.axes import INK, MUTED, SERIES, error_bars, legend_above, new_axes
from gumiho_simulator.forecasting.intervals import Interval
from gumiho_simulator.forecasting.tau import Forecast
from gumiho_theory import InputError
from gumiho_theory.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 0.6  # of the room that a category's series share


def plot_length_laws(distributions: Mapping[str, ArrayLike], ax: Axes | None = None) -> Axes:
    """Draw distributions of the accepted length side by side.

    Parameters
    ----------
    distributions : mapping of str to array_like [D + 1]
        P(L = 0..D), L without the bonus token, each under its name; up to six, of any D.
    """
    ax = ax or new_axes(6.4, 3.8)
    longest = 0
    for (name, one), shift, (colour, _) in zip(
        distributions.items(), _shifts(len(distributions)), SERIES, strict=False
    ):
        values = np.asarray(one, dtype=np.float64)
        longest = max(longest, values.size)
        width = _WIDTH / len(distributions)
        ax.bar(np.arange(values.size) + shift, values, width=0.9 * width, color=colour, alpha=0.85, label=name)
    ax.set(xlabel="accepted draft tokens L in a cycle (bonus token not counted)", ylabel="share of cycles")
    ax.set_xticks(np.arange(longest))
    legend_above(ax, columns=2)
    return ax


def plot_forecasts(
    forecasts: Mapping[str, Sequence[Forecast]],
    measured: Mapping[str, tuple[float, float, float]],
    ax: Axes | None = None,
) -> Axes:
    """Draw tau by structure, as each model forecasts it and as it was measured.

    Parameters
    ----------
    forecasts
        Forecasts by the name of their model, up to six; those without a number are left out. Filled markers are
        supported by the log, hollow ones go beyond it.
    measured
        By structure: tau (bonus included, micro) and its 95 % limits; nan limits are not drawn. The structures are
        drawn in this order.
    """
    ax = ax or new_axes(7.4, 4.2)
    place = {structure: index for index, structure in enumerate(measured)}
    for index, (value, low, high) in enumerate(measured.values()):
        side = [index - 0.4, index + 0.4]
        label = "measured (95 %)" if index == 0 else None
        ax.fill_between(side, [low, low], [high, high], color=MUTED, alpha=0.2, linewidth=0, zorder=0)
        ax.plot(side, [value, value], color=INK, linewidth=1.6, label=label, zorder=1)
    for (name, rows), shift, (colour, marker) in zip(forecasts.items(), _shifts(len(forecasts)), SERIES, strict=False):
        label = name
        for row in rows:
            if row.tau is None or row.structure not in place:
                continue
            look: dict[str, Any] = {"markerfacecolor": colour if row.supported else "white", "label": label}
            at = [place[row.structure] + shift]
            error_bars(ax, at, [row.tau], [row.lo], [row.hi], fmt=marker, color=colour, **look)
            label = "_" + name  # once in the legend
    ax.set(ylabel="tau (tokens a cycle, bonus included, micro)")
    ax.set_xticks(range(len(place)), list(place))
    ax.set_xlim(-0.6, len(place) - 0.4)
    legend_above(ax, columns=4)
    return ax


def plot_residuals(measured: Interval, modelled: Mapping[str, ArrayLike], ax: Axes | None = None) -> Axes:
    """Draw what models leave unexplained: measured less modelled conditional rates, by draft position.

    Each bar is the interval of the measured rate, moved to the residual.

    Parameters
    ----------
    measured : Interval, arrays [D]
        Conditional rates pooled over cycles, with 95 % limits clustered by prompt.
    modelled : mapping of str to array_like [D]
        Rates of up to six models, by name.

    Raises
    ------
    InputError
        A model with another number of positions.
    """
    ax = ax or new_axes(6.4, 3.8)
    position = np.arange(1, measured.estimate.size + 1)
    ax.axhline(0, color=INK, linewidth=1)
    for (name, rates), shift, (colour, marker) in zip(modelled.items(), _shifts(len(modelled)), SERIES, strict=False):
        values = np.asarray(rates, dtype=np.float64)
        if values.shape != measured.estimate.shape:
            raise InputError(f"rates of {name}", f"shape {values.shape}", f"{measured.estimate.shape}")
        left, low, high = (one - values for one in (measured.estimate, measured.low, measured.high))
        error_bars(ax, position + shift, left, low, high, fmt=marker, color=colour, label=name)
    ax.set(xlabel="draft position i", ylabel="measured − modelled conditional rate")
    ax.set_xticks(position)
    legend_above(ax, columns=4)
    return ax


def _shifts(series: int) -> FloatArray:
    """Horizontal places of series that share a category."""
    if not 1 <= series <= len(SERIES):
        raise InputError("series", series, f"1 to {len(SERIES)}")
    return (np.arange(series) - (series - 1) / 2) * _WIDTH / series
