"""Figure of what each draft position is worth: data and an Axes in, the Axes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gumiho_simulator.figures.basics import new_axes
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
    ax
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        The axes drawn on.
    """
    import seaborn as sns

    ax = ax if ax is not None else new_axes(_SIZE)
    colours = sns.color_palette("colorblind", len(found))
    for index, (name, rows) in enumerate(found.items()):
        shift = 0.12 * (index - (len(found) - 1) / 2)  # intervals side by side
        ax.errorbar(
            [row.position + shift for row in rows],
            [row.gain for row in rows],
            yerr=[[row.gain - row.lo for row in rows], [row.hi - row.gain for row in rows]],
            fmt="o-",
            color=colours[index],
            markersize=5,
            linewidth=1.4,
            capsize=2.5,
            label=name,
        )
    ax.axhline(0, linewidth=0.8, color="0.6", zorder=0)
    ax.set(xlabel="draft position whose head never errs", ylabel="gain of tau (tokens a cycle)")
    ax.set_xticks(sorted({row.position for rows in found.values() for row in rows}))
    if len(found) > 1:
        ax.legend(frameon=False)
    return ax


def write_importance(found: Mapping[str, Sequence[PositionImportance]], path: Path) -> None:
    """Write the figure; see `figure_file.write_figure`."""
    write_figure(path, _SIZE, lambda figure: plot_importance(found, figure.subplots()))
