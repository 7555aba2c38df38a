"""Figures as files, .svg, .png or .pdf, and as SVG text for a page."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gumiho_simulator.figures.axes import style
from gumiho_theory import InputError
from gumiho_theory.files import check_output, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png", ".pdf")


def check_figure(path: Path, others: Iterable[Path] = ()) -> None:
    """Refuse a suffix that is none of these formats, and a place that cannot be written; InputError names it.

    Commands call it before long work. `others` are files that they read or write besides.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError("--figure", path.name, "a name that ends in .svg, .png or .pdf")
    check_output(path, others, "--figure", "a file of its own")


def write_figure(path: Path, size: tuple[float, float], draw: Callable[[Figure], object]) -> None:
    """Draw a figure and write it; equal data give equal files.

    Parameters
    ----------
    path
        File to write; its suffix says the format.
    size
        Width and height, inches.
    draw
        Draws on the empty figure.

    Raises
    ------
    InputError
        Another suffix, or the file cannot be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    check_figure(path)
    kind = path.suffix[1:].lower()
    # A file is looked at on any ground, so that it needs one of its own.
    settings = {**style(), "svg.hashsalt": "gumiho", "savefig.facecolor": "white"}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        metadata = {"Date": None} if kind == "svg" else None
        write_atomically(path, lambda file: figure.savefig(file, format=kind, metadata=metadata))


def svg_text(name: str, size: tuple[float, float], draw: Callable[[Figure], object], ground: str = "none") -> str:
    """Draw a figure as SVG text without touching matplotlib's global state; equal data give equal text.

    `name`: Of the figure: ids within the text are hashed with it, so that several figures can share one page. `size`:
    Width and height, inches. `draw`: Draws on the empty figure. `ground`: Colour behind it. Returns the file's text.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings = {**style(), "figure.facecolor": ground, "savefig.facecolor": ground}
    with rc_context({**settings, "svg.fonttype": "path", "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
