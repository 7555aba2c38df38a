"""What `gumiho bench` prints for people, and the table and figures that it writes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from gumiho_simulator.figures.basics import style
from gumiho_simulator.figures.bench import panel_height, plot_bench, structure_label
from gumiho_simulator.reports.bench import bench_page
from gumiho_simulator.reports.tables import show, table, text
from gumiho_theory import InputError
from gumiho_theory.files import reason, write_atomically

Rows = Sequence[Mapping[str, Any]]
Group = tuple[str, float]

QUANTITIES = ("tau", "speedup")


def show_bench(rows: Rows) -> None:
    """Print rows of a bench, a table for each prompt file and temperature.

    Parameters
    ----------
    rows
        Rows of ``gumiho bench``.
    """
    columns = ("structure", "tau", "early", "speedup", "x generate", "draft, verify ms", "equal")
    parts: list[Any] = []
    for (prompts, temperature), group in grouped(rows).items():
        for drafter in dict.fromkeys(row["drafter"] for row in group):
            title = f"{drafter} on {prompts}, temperature {temperature:g}"
            cells = [
                (
                    structure_label(row),
                    _with_limits(row, "tau"),
                    text(row["tau_first"], 2),
                    _with_limits(row, "speedup"),
                    text(row["speedup_generate"], 2),
                    f"{text(row['draft_ms'], 1)}, {text(row['verify_ms'], 1)}",
                    _equal(row["lossless"]),
                )
                for row in group
                if row["drafter"] == drafter and row["error"] is None
            ]
            if cells:
                parts.append(table(columns, cells, title))
    parts += [f"not measured: {row['drafter']}: {row['error']}" for row in rows if row["error"] is not None]
    show(
        *parts,
        "tau: micro, bonus included, complete cycles; limits 95 %, clustered by prompt",
        f"early: tau of the cycles that start within {rows[0]['first']} new tokens",
        "speedup: over the plain loop, wall time with prefill; equal: outputs equal to plain greedy decoding",
    )


def write_bench_report(folder: Path, rows: Rows) -> None:
    """Write ``rows.csv``, ``tau.svg``, ``speedup.svg``, and the page ``index.html``, which shows all of it offline.

    A figure has a panel for each prompt file and temperature.

    Parameters
    ----------
    folder
        Where to write; made when missing.
    rows
        Rows of ``gumiho bench``.

    Raises
    ------
    InputError
        The folder or a file in it cannot be written.
    """
    svgs = {quantity: bench_svg(rows, quantity) for quantity in QUANTITIES}
    files = {"rows.csv": rows_csv(rows), **{f"{name}.svg": svg for name, svg in svgs.items()}}
    files["index.html"] = bench_page(rows, grouped(rows), svgs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder that can be made and written") from error
    for name, content in files.items():
        write_atomically(folder / name, partial(_put, content))


def grouped(rows: Rows) -> dict[Group, list[Mapping[str, Any]]]:
    """Return the rows by prompt file and temperature, in order of appearance.

    Parameters
    ----------
    rows
        Rows of ``gumiho bench``.

    Returns
    -------
    dict
        Rows of each (prompt file, temperature).
    """
    groups: dict[Group, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["prompts"], row["temperature"]), []).append(row)
    return groups


def rows_csv(rows: Rows) -> str:
    """Return rows as CSV: a column a key, those of `lossless` apart; what is null is empty.

    Parameters
    ----------
    rows
        Rows of ``gumiho bench``; at least one.

    Returns
    -------
    str
        The file's text.
    """
    kinds = ("checked", "equal", "ties", "different")
    flat = [
        {key: value for key, value in row.items() if key != "lossless"}
        | {f"lossless_{kind}": (row["lossless"] or {}).get(kind) for kind in kinds}
        for row in rows
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(flat[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def bench_svg(rows: Rows, quantity: str) -> str:
    """Draw a quantity of all rows, as SVG text: prompt files below, temperatures beside one another.

    Parameters
    ----------
    rows
        Rows of ``gumiho bench``; at least one.
    quantity
        ``tau`` or ``speedup``.

    Returns
    -------
    str
        The file's text; equal data give equal text.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    groups = grouped(rows)
    files = list(dict.fromkeys(file for file, _ in groups))
    temperatures = list(dict.fromkeys(temperature for _, temperature in groups))
    height = max(panel_height(group) for group in groups.values())
    settings = style() | {"figure.facecolor": "white", "savefig.facecolor": "white"}
    with rc_context(settings | {"svg.fonttype": "path", "svg.hashsalt": quantity}):
        figure = Figure(figsize=(2.0 + 4.4 * len(temperatures), height * len(files)), layout="constrained")
        FigureCanvasSVG(figure)
        panels = figure.subplots(len(files), len(temperatures), sharex=True, sharey=True, squeeze=False)
        for (file, temperature), group in groups.items():
            ax = plot_bench(group, quantity, panels[files.index(file), temperatures.index(temperature)])
            ax.set_title(f"{Path(file).stem}, temperature {temperature:g}", loc="left", fontsize=10.5)
        for ax in panels[:-1].flat:
            ax.set_xlabel("")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=min(3, len(labels)))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _put(content: str, file: BinaryIO) -> None:
    file.write(content.encode())


def _with_limits(row: Mapping[str, Any], quantity: str) -> str:
    low, high = row[f"{quantity}_lo"], row[f"{quantity}_hi"]
    return text(row[quantity], 2) + ("" if low is None else f" {text([low, high], 2)}")


def _equal(counts: Mapping[str, int] | None) -> str:
    if counts is None:
        return "–"
    wrong = f", {counts['different']} DIFFERENT" if counts["different"] else ""
    ties = f", {counts['ties']} ties" if counts["ties"] else ""
    return f"{counts['equal']}/{counts['checked']}{ties}{wrong}"
