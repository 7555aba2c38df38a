"""A bench as one HTML page that opens offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gumiho_simulator.figures.bench import structure_label
from gumiho_simulator.reports.page import inline_svg, template
from gumiho_simulator.reports.tables import spaced

Row = Mapping[str, Any]

CAPTIONS = {
    "tau": "Mean accepted length by drafter and structure, 95 % over prompts.",
    "speedup": "Speed as a multiple of plain decoding, prefill included, 95 % over prompts; left of 1 is slower.",
}
_COUNTS = ("checked", "equal", "ties", "different")


def bench_page(rows: Sequence[Row], groups: Mapping[tuple[str, float], Sequence[Row]], svgs: Mapping[str, str]) -> str:
    """Return the page.

    Parameters
    ----------
    rows
        Rows of ``gumiho bench``, at least one.
    groups
        The rows by prompt file and temperature.
    svgs
        Figures, by quantity.

    Returns
    -------
    str
        HTML; equal data give equal text.
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
