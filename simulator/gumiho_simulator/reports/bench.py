"""A bench for people: its tables in the terminal, and its CSV, figures and page that opens offline."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumiho_simulator.figures.bench import panel_height, plot_bench, structure_label
from gumiho_simulator.figures.file import svg_text
from gumiho_simulator.reports.page import inline_svg, template, write_files
from gumiho_simulator.reports.tables import show, spaced, table, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Group = tuple[str, float]

CAPTIONS = {
    "tau": "Mean accepted length by drafter and structure, 95 % over prompts.",
    "speedup": "Speed as a multiple of plain decoding, prefill included, 95 % over prompts; left of 1 is slower.",
}
_COUNTS = ("checked", "equal", "ties", "different")


def show_bench(rows: Sequence[Row]) -> None:
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


def write_bench_report(folder: Path, rows: Sequence[Row]) -> None:
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
    svgs = {quantity: bench_svg(rows, quantity) for quantity in CAPTIONS}
    figures = {f"{quantity}.svg": svg for quantity, svg in svgs.items()}
    page = bench_page(rows, grouped(rows), svgs)
    write_files(folder, {"rows.csv": rows_csv(rows), **figures, "index.html": page})


def grouped(rows: Sequence[Row]) -> dict[Group, list[Row]]:
    """Return the rows by (prompt file, temperature), in order of appearance."""
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault((row["prompts"], row["temperature"]), []).append(row)
    return groups


def rows_csv(rows: Sequence[Row]) -> str:
    """Return rows, at least one, as CSV: a column a key, those of `lossless` apart; what is null is empty."""
    flat = [
        {key: value for key, value in row.items() if key != "lossless"}
        | {f"lossless_{kind}": (row["lossless"] or {}).get(kind) for kind in _COUNTS}
        for row in rows
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(flat[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def bench_svg(rows: Sequence[Row], quantity: str) -> str:
    """Draw ``tau`` or ``speedup`` of all rows as SVG text: prompt files below, temperatures beside one another."""
    groups = grouped(rows)
    files = list(dict.fromkeys(file for file, _ in groups))
    temperatures = list(dict.fromkeys(temperature for _, temperature in groups))
    height = max(panel_height(group) for group in groups.values())

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(files), len(temperatures), sharex=True, sharey=True, squeeze=False)
        for (file, temperature), group in groups.items():
            ax = plot_bench(group, quantity, panels[files.index(file), temperatures.index(temperature)])
            ax.set_title(f"{Path(file).stem}, temperature {temperature:g}", loc="left", fontsize=10.5)
        for ax in panels[:-1].flat:
            ax.set_xlabel("")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=min(3, len(labels)))

    return svg_text(quantity, (2.0 + 4.4 * len(temperatures), height * len(files)), draw, ground="white")


def bench_page(rows: Sequence[Row], groups: Mapping[tuple[str, float], Sequence[Row]], svgs: Mapping[str, str]) -> str:
    """Return the page.

    `rows`: Rows of ``gumiho bench``, at least one. `groups`: The rows by prompt file and temperature. `svgs`: Figures,
    by quantity. Returns HTML; equal data give equal text.
    """
    from markupsafe import Markup

    counts = [row["n_prompts"] for row in rows if row["error"] is None]
    checks = [row["lossless"] for row in rows if row["lossless"]]
    return template("bench.html.j2").render(
        rows=rows,
        groups={(Path(file).name, temperature): group for (file, temperature), group in groups.items()},
        drafters=list(dict.fromkeys(row["drafter"] for row in rows)),
        prompts=max(counts, default=0),
        uneven=len(set(counts)) > 1,
        best=_largest(rows, "speedup"),
        longest=_largest(rows, "tau"),
        equal={kind: sum(check[kind] for check in checks) for kind in _COUNTS},
        # The SVG text is made here from escaped strings; everything else the template escapes.
        figures={name: Markup(inline_svg(svg, CAPTIONS[name])) for name, svg in svgs.items()},
        captions=CAPTIONS,
        label=lambda row: spaced(structure_label(row)),
    )


def _largest(rows: Sequence[Row], quantity: str) -> Row | None:
    known = [row for row in rows if row[quantity] is not None]
    return max(known, key=lambda row: float(row[quantity])) if known else None


def _with_limits(row: Row, quantity: str) -> str:
    low, high = row[f"{quantity}_lo"], row[f"{quantity}_hi"]
    return text(row[quantity], 2) + ("" if low is None else f" {text([low, high], 2)}")


def _equal(counts: Mapping[str, int] | None) -> str:
    if counts is None:
        return "–"
    wrong = f", {counts['different']} DIFFERENT" if counts["different"] else ""
    ties = f", {counts['ties']} ties" if counts["ties"] else ""
    return f"{counts['equal']}/{counts['checked']}{ties}{wrong}"
