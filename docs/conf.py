"""Sphinx settings. What code knows is generated from code before each build, into docs/generated and docs/notebooks."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from generate import generate_all

generate_all(Path(__file__).parent)

project = "Gumiho toolkit"
author = "The Gumiho toolkit developers"
version = release = installed_version("gumiho")
copyright = f"2026, {author}"

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = project
html_static_path: list[str] = []

# Notebooks are executed by the tests, not here: a build takes seconds, and its pages show the code.
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections say the types, with shapes
numpydoc_show_class_members = False
# Single backticks in docstrings name code, most of it in other modules; none of them is a title.
default_role = "code"
# Types are written for people ("float array [D]"), so names in docstrings do not resolve; links in pages must.
nitpicky = False


def adapt(app: Any, docname: str, source: list[str]) -> None:
    """Turn links that leave docs/, which a site cannot follow, into the path they name; list findings if they ship."""
    if docname == "index" and not (Path(app.srcdir) / "findings.md").exists():
        source[0] = source[0].replace("\nfindings\n", "\n")
    if "/" not in docname:
        source[0] = re.sub(r"\[([^\]]+)\]\(\.\./([^)]+)\)", r"\1 (`\2`)", source[0])


def setup(app: Any) -> None:
    """Register the hook above."""
    app.connect("source-read", adapt)
