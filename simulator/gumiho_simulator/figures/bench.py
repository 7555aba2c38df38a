"""A bench's rows drawn: tau or speedup with their intervals, by structure and drafter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from gumiho_simulator.figures.axes import MUTED, error_bars, names_at_side, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]

LABELS = {"tau": "tau (tokens a cycle, bonus included, micro)", "speedup": "speedup over plain decoding"}
_MARKERS = "osD^vP*X"


def structure_label(row: Mapping[str, Any]) -> str:
    """Return what a row's structure is called: its text, and whether its tree was calibrated."""
    return str(row["structure"]) + (", calibrated" if row["calibrated"] else "")


def plot_bench(rows: Rows, quantity: str, ax: Axes | None = None) -> Axes:
    """Draw one quantity of a bench, a line for each structure and a colour for each drafter.

    Parameters
    ----------
    rows
        Rows of ``gumiho bench`` for one prompt file and one temperature; those without the quantity are left out, but
        keep their line and their colour.
    quantity
        ``tau`` (bonus included, micro) or ``speedup`` (over plain decoding); limits are 95 %, clustered by prompt.
    """
    import seaborn

    ax = ax or new_axes(6.4, panel_height(rows))
    structures = list(dict.fromkeys(structure_label(row) for row in rows))
    drafters = list(dict.fromkeys(row["drafter"] for row in rows))
    colours = seaborn.color_palette("colorblind", len(drafters))
    step = 0.7 / len(drafters)
    for number, (drafter, colour) in enumerate(zip(drafters, colours, strict=True)):
        own = [row for row in rows if row["drafter"] == drafter and row[quantity] is not None]
        values, low, high = ([row[f"{quantity}{end}"] for row in own] for end in ("", "_lo", "_hi"))
        shift = (number - (len(drafters) - 1) / 2) * step
        place = [structures.index(structure_label(row)) + shift for row in own]
        look: dict[str, Any] = {"fmt": _MARKERS[number % len(_MARKERS)], "color": colour, "label": drafter}
        error_bars(ax, place, values, low, high, across=True, elinewidth=1.6, capsize=3, **look)
    ax.axvline(1.0, color=MUTED, linewidth=1.0, linestyle="--", zorder=0)  # plain decoding: a token a step
    ax.set_yticks(range(len(structures)), [fill(name.replace(",", ", "), 28) for name in structures])
    ax.set_ylim(len(structures) - 0.5, -0.5)
    names_at_side(ax)
    ax.set(xlabel=LABELS[quantity])
    return ax


def panel_height(rows: Rows) -> float:
    """Return the height, in inches, in which `plot_bench` of these rows is legible."""
    structures = len({structure_label(row) for row in rows})
    return 1.1 + structures * max(0.5, 0.18 * len({row["drafter"] for row in rows}))
