"""What each draft position is worth, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumiho_simulator.figures.axes import error_bars, new_axes
from gumiho_simulator.figures.file import write_figure
from gumiho_simulator.replaying.worth import PositionImportance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (6.4, 4.0)  # inches


def plot_importance(found: Mapping[str, Sequence[PositionImportance]], ax: Axes | None = None) -> Axes:
    """Draw the gain of tau from a perfect head by draft position, with 95 % intervals.

    Parameters
    ----------
    found
        What `importance` returned, by the name that the legend shows.
    """
    import seaborn as sns

    ax = ax or new_axes(*_SIZE)
    colours = sns.color_palette("colorblind", len(found))
    for index, (name, rows) in enumerate(found.items()):
        shift = 0.12 * (index - (len(found) - 1) / 2)  # intervals side by side
        low, high = [row.lo for row in rows], [row.hi for row in rows]
        place, gain = [row.position + shift for row in rows], [row.gain for row in rows]
        look: dict[str, Any] = {"fmt": "o-", "color": colours[index], "markersize": 5, "linewidth": 1.4, "label": name}
        error_bars(ax, place, gain, low, high, **look)
    ax.axhline(0, linewidth=0.8, color="0.6", zorder=0)
    ax.set(xlabel="draft position whose head never errs", ylabel="gain of tau (tokens a cycle)")
    ax.set_xticks(sorted({row.position for rows in found.values() for row in rows}))
    if len(found) > 1:
        ax.legend(frameon=False)
    return ax


def write_importance(found: Mapping[str, Sequence[PositionImportance]], path: Path) -> None:
    """Write `plot_importance` to a file; see `write_figure`."""
    write_figure(path, _SIZE, lambda figure: plot_importance(found, figure.subplots()))
