"""Reliability diagrams: draft and calibrated probabilities beside how often the candidates were right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gumiho_simulator.calibrating.error import Reliability
from gumiho_simulator.calibrating.fitted import Calibrated
from gumiho_simulator.figures.axes import BLUE, GREEN, MUTED, ORANGE, error_bars, new_axes
from gumiho_simulator.figures.file import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 4


def plot_reliability(curves: Mapping[str, Reliability], ax: Axes | None = None) -> Axes:
    """Draw forecast against observed acceptance, bin by bin, with 95 % limits and the diagonal of no error.

    Parameters
    ----------
    curves
        Points by name, three at most.
    """
    ax = ax or new_axes(4.2, 4.2)
    ax.plot([0, 1], [0, 1], "--", color=MUTED, linewidth=1)
    for (name, curve), colour, marker in zip(curves.items(), (ORANGE, BLUE, GREEN), "os^", strict=False):
        observed = curve.observed
        look: dict[str, Any] = {"fmt": f"-{marker}", "color": colour, "label": name, "markersize": 4.5, "capsize": 0}
        widths: dict[str, Any] = {"linewidth": 1.2, "elinewidth": 1.2}
        error_bars(ax, curve.forecast, observed.estimate, observed.low, observed.high, **look, **widths)
    ax.set(xlabel="forecast acceptance probability", ylabel="share accepted", xlim=(0, 1), ylim=(0, 1.02))
    ax.set_aspect("equal")
    ax.legend(loc="lower right", handletextpad=0.5)
    return ax


def write_reliability(calibrated: Calibrated, path: Path) -> None:
    """Write the reliability diagram of every depth, on held-out prompts, side by side.

    `calibrated`: What `calibrate` returned. `path`: File to write; see `write_figure`.
    """
    columns = min(_COLUMNS, len(calibrated.depths))
    rows = -(-len(calibrated.depths) // columns)

    def draw(figure: Figure) -> None:
        panels = np.ravel(figure.subplots(rows, columns, squeeze=False))
        for one, ax in zip(calibrated.depths, panels, strict=False):
            plot_reliability({"draft": one.reliability_before, calibrated.kind: one.reliability_after}, ax)
            ax.set_title(f"draft position {one.depth}", fontsize=10.5)
        for ax in panels[len(calibrated.depths) :]:
            ax.set_axis_off()

    write_figure(path, (3.1 * columns, 3.3 * rows), draw)
