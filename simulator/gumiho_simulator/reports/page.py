"""What the HTML pages share: templates, numbers, figures as elements of a page, and the folder written whole."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from gumiho_simulator.figures.axes import BLUE, GREEN, INK, MUTED
from gumiho_theory import InputError
from gumiho_theory.files import reason, write_atomically

if TYPE_CHECKING:
    from jinja2 import Template


def template(name: str) -> Template:
    """Return a page's template; what is filled in is escaped.

    `name`: File in ``templates``. Returns with the filter ``number``: so many digits and a suffix, a dash for None, nan
    and infinity.
    """
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("gumiho_simulator.reports"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = _number
    return environment.get_template(name)


def _number(value: float | None, digits: int = 2, suffix: str = "") -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}{suffix}"


def inline_svg(svg: str, label: str) -> str:
    """Turn an SVG file into an element of a page, with the page's text colours and a label.

    `svg`: File content. `label`: What the figure shows; escaped here. Returns markup of one ``<svg>`` element.
    """
    from markupsafe import escape

    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    # The size in points would keep the figure from shrinking with the page; the viewBox keeps its shape.
    body = re.sub(r'(<svg\b[^>]*?) width="([\d.]+)pt" height="[\d.]+pt"', r'\1 style="--w: \2pt"', body, count=1)
    for colour, name in ((INK, "ink"), (MUTED, "muted"), (BLUE, "blue"), (GREEN, "green")):
        body = body.replace(colour, f"var(--{name})")
    return body.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def write_files(folder: Path, texts: Mapping[str, str]) -> None:
    """Write texts into a folder, each in one step.

    `folder`: Made when missing. `texts`: By the file's place in the folder, such as "figures/rates.svg". Raises
    InputError: The folder or a file in it cannot be written.
    """
    try:
        for place in {(folder / name).parent for name in texts}:
            place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder that can be made and written") from error

    def write(text: str, file: BinaryIO) -> None:
        file.write(text.encode())

    for name, text in texts.items():
        write_atomically(folder / name, partial(write, text))
