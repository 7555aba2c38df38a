"""The paper's main table drawn: what the method is said to gain, and what a model of costs makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gumiho_simulator.costs.paper import RatioPrediction
from gumiho_simulator.figures.axes import BLUE, GREY, INK, MUTED, ORANGE, legend_above, names_at_side, new_axes
from gumiho_theory import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LABELS = {
    "tau": "tau as published (bonus included, macro)",
    "speedup": "speedup over plain decoding, as published",
}


def plot_published(table: pd.DataFrame, quantity: str, ax: Axes | None = None) -> Axes:
    """Draw one quantity of EAGLE-2 and Gumiho by target, averaged over the benchmarks; one row a temperature.

    Small dots are the single benchmarks.

    Parameters
    ----------
    table
        From `gumiho_simulator.costs.paper.published_speedups`.
    quantity
        ``tau`` or ``speedup``.

    Raises
    ------
    InputError
        Another quantity.
    """
    if quantity not in LABELS:
        raise InputError("quantity", repr(quantity), " or ".join(LABELS))
    rows = table.groupby(["target", "temperature"], sort=True).ngroups
    ax = ax or new_axes(6.8, 1.0 + 0.34 * rows)
    names = []
    for row, ((target, temperature), part) in enumerate(table.groupby(["target", "temperature"], sort=True)):
        names.append(f"{target}, T = {temperature:g}")
        means = []
        for method, colour, marker, shift in (("EAGLE-2", GREY, "o", 0.12), ("Gumiho", BLUE, "D", -0.12)):
            values = part.loc[part["method"] == method, quantity].to_numpy(np.float64)
            means.append(values.mean())
            ax.plot(values, np.full(values.size, row + shift), ".", color=colour, markersize=3.5, alpha=0.7)
            label = method if row == 0 else None
            ax.plot(means[-1], row, marker, color=colour, markersize=7, label=label, zorder=3)
        ax.plot(means, [row, row], color=MUTED, linewidth=1.4, zorder=2)
    ax.set_yticks(range(rows), names)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.set(xlabel=LABELS[quantity])
    names_at_side(ax)
    legend_above(ax, columns=2)
    return ax


def plot_ratio_predictions(predictions: Sequence[RatioPrediction], ax: Axes | None = None) -> Axes:
    """Draw predicted against published ratios of speedups, Gumiho's over EAGLE-2's, with the line of no error.

    The band is 5 % to either side.

    Parameters
    ----------
    predictions
        From `gumiho_simulator.costs.paper`: each is fitted on some targets and drawn for the others.
    """
    ax = ax or new_axes(4.8, 4.6)
    predicted = np.concatenate([one.predicted for one in predictions])
    published = np.concatenate([one.published for one in predictions])
    ends = np.array([min(predicted.min(), published.min()) - 0.02, max(predicted.max(), published.max()) + 0.02])
    ax.fill_between(ends, 0.95 * ends, 1.05 * ends, color=MUTED, alpha=0.15, linewidth=0, label="within 5 %")
    ax.plot(ends, ends, color=INK, linewidth=1)
    ax.plot(published, predicted, "o", color=ORANGE, markersize=3.5, alpha=min(1.0, 60 / predicted.size + 0.1))
    ax.set(xlabel="published ratio of speedups, Gumiho / EAGLE-2", ylabel="predicted from tau on other targets")
    ax.set(xlim=tuple(ends), ylim=tuple(ends))
    ax.set_aspect("equal")
    ax.legend(loc="upper left")
    return ax
