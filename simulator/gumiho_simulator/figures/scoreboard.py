"""The scoreboard drawn: forecast against measured tau with intervals, and errors by structure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gumiho_simulator.figures.axes import BLUE, GREEN, MUTED, ORANGE, error_bars, new_axes
from gumiho_simulator.figures.file import write_figure
from gumiho_simulator.scoreboard.rows import ADVISED, CHAIN, DYNAMIC, PUBLISHED, SAME, STATIC, ScoreRow
from gumiho_theory import DynamicTree, StaticTree, Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {CHAIN: BLUE, STATIC: ORANGE, DYNAMIC: GREEN}
_MARKERS = {CHAIN: "o", STATIC: "s", DYNAMIC: "^"}
_TAU = "tau (tokens a cycle, bonus included, micro)"
_SIZE = (5.4, 4.6)  # of a new figure, inches


def shown_rows(rows: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Return the forecasts that figures show: of each kind of structure by the model advised for it."""
    advised = [
        row for row in rows if ADVISED.get(row.kind) == row.model or (row.source, row.model) == (PUBLISHED, "points")
    ]
    return [row for row in advised if row.forecast is not None and row.kind != SAME]


def plot_forecasts(rows: Sequence[ScoreRow], ax: Axes | None = None) -> Axes:
    """Draw forecast against measured tau, with 95 % intervals of the forecast and the diagonal of no error.

    Parameters
    ----------
    rows
        Forecasts; those without tau are left out.
    """
    ax = ax or new_axes(*_SIZE)
    ends = [value for row in rows for value in (row.measured, row.forecast, row.lo, row.hi) if value is not None]
    if ends:
        ax.plot([min(ends), max(ends)], [min(ends), max(ends)], "--", color=MUTED, linewidth=1)
    for kind, colour in _COLOURS.items():
        own = [row for row in rows if row.kind == kind and row.forecast is not None]
        if not own:
            continue
        made = np.array([row.forecast for row in own], dtype=np.float64)
        low, high = [row.lo for row in own], [row.hi for row in own]
        look: dict[str, Any] = {"fmt": _MARKERS[kind], "color": colour, "label": kind, "markersize": 4, "alpha": 0.75}
        error_bars(ax, [row.measured for row in own], made, low, high, elinewidth=0.9, capsize=0, **look)
    ax.set(xlabel=f"measured {_TAU}", ylabel="forecast tau, with 95 % interval")
    ax.legend(loc="upper left", handletextpad=0.5)
    return ax


def plot_errors(rows: Sequence[ScoreRow], ax: Axes | None = None) -> Axes:
    """Draw signed errors by structure, one point a forecast, with what a perfect model would show.

    Errors are in percent of the measured tau. Grey bars: the error that a perfect model exceeds one time in twenty with
    the same held-out prompts.

    `rows`: Forecasts; those without tau are left out.
    """
    import seaborn

    ax = ax or new_axes(*_SIZE)
    known = [row for row in rows if row.relative_error is not None]
    names = sorted({_label(row) for row in known}, key=_order)
    floors = {
        name: 100 * max((row.sampling_floor_95 or 0.0 for row in known if _label(row) == name), default=0.0)
        for name in names
    }
    ax.barh(names, [2 * floors[name] for name in names], left=[-floors[name] for name in names], color=MUTED, alpha=0.2)
    ax.axvline(0, color=MUTED, linewidth=1)
    if known:
        seaborn.stripplot(
            x=[100 * (row.relative_error or 0.0) for row in known],
            y=[_label(row) for row in known],
            hue=[row.kind for row in known],
            order=names,
            palette=_COLOURS,
            hue_order=list(_COLOURS),
            marker="|",
            size=11,
            linewidth=1.6,
            alpha=0.75,
            jitter=False,
            legend=False,
            ax=ax,
        )
    ax.set(xlabel="error of tau, % of the measured tau", ylabel="")
    if any(floors.values()):
        ax.set_title("grey: 95 % of a perfect model's errors", fontsize=10)
    ax.grid(False, axis="y")
    return ax


def write_scoreboard_figure(rows: Sequence[ScoreRow], path: Path) -> None:
    """Write both figures side by side; see `write_figure`.

    `rows`: All rows of a scoreboard; see `shown_rows` for those drawn. `path`: File to write; its suffix says the
    format.
    """
    shown = shown_rows(rows)

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        plot_forecasts(shown, left)
        plot_errors(shown, right)

    write_figure(path, (11, 4.8), draw)


def _label(row: ScoreRow) -> str:
    if row.kind == CHAIN:
        return row.structure + (" (published)" if row.source == PUBLISHED else "")
    structure = Structure.parse(row.structure)
    if isinstance(structure, DynamicTree):
        return f"dynamic tree, {structure.total} nodes, depth {structure.depth}"
    assert isinstance(structure, StaticTree)
    return f"static tree, {structure.tree.n_nodes} nodes"


def _order(label: str) -> tuple[bool, str, int]:
    kind, _, rest = label.replace(":", ", ").partition(", ")
    return "published" in label, kind, int(rest.split(" ")[0])
