"""Pages made from code: trace schema, command reference, API, scoreboard; and copies of the notebooks."""

from __future__ import annotations

import csv
import importlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# The rooms and modules behind the packages' own names.
_OF = {
    "gumiho_theory": "rates drafts theorem theorem.proof extensions logs",
    "gumiho_simulator": "acceptance importers forecasting replaying calibrating costs allocating scoreboard figures",
    "gumiho_decoder": "config loop target draft acceptance drafters logging measuring training",
}
PACKAGES = tuple(_OF)
MODULES = tuple(f"{package}.{name}" for package, names in _OF.items() for name in names.split())


def generate_all(docs: Path) -> None:
    """Write every generated page; folders are made anew, so that nothing stale stays."""
    made, notebooks = docs / "generated", docs / "notebooks"
    for folder in (made, notebooks):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    pages = {
        "trace_schema.md": trace_schema(),
        "commands.md": commands(),
        "api.md": api(),
        "scoreboard.md": scoreboard(docs.parent),
    }
    for name, text in pages.items():
        (made / name).write_text(text, encoding="utf-8")
    for name in MODULES:
        (made / f"{name}.md").write_text(module_page(name), encoding="utf-8")
    for notebook in sorted((docs.parent / "notebooks").glob("*.ipynb")):
        shutil.copy(notebook, notebooks)


def table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def trace_schema() -> str:
    """Return the page of the two log files, from the schemas that read and write them."""
    from gumiho_theory.logs import EVERY_POSITION_SCHEMA, TRACE_SCHEMA

    page = (
        "# Trace schema\n\nBoth files are Parquet. Schema, versions, arguments, models, device and seed stand in their "
        "metadata. Readers accept older files and say what they lack. A value that was never reached or not drafted is "
        "null, never 0.\n"
    )
    for title, schema in (("Cycle trace", TRACE_SCHEMA), ("Every-position log", EVERY_POSITION_SCHEMA)):
        rows = [
            (f"`{one.name}`", one.kind.replace("_", " "), one.unit, "yes" if one.required else "", one.description)
            for one in schema.columns
        ]
        page += f"\n## {title}: `{schema.tag}`\n\n" + table(("column", "kind", "unit", "required", "meaning"), rows)
    return page + (
        "\nA *list* holds one value a draft position, a *table* a list of k at each, *structures* one value a logged "
        "structure. What position, at risk and censored mean: [](../concepts.md).\n"
    )


def commands() -> str:
    """Return the page of the command line, from the application itself."""
    import typer

    from gumiho_decoder.commands.main import app

    page = (
        "# Commands\n\nEvery command has `--help`; with `--json` it prints one JSON object. Exit status: 0 done, 1 the "
        "answer is no, 2 bad input. `gumiho --install-completion` sets up completion for your shell.\n"
    )
    for name, command, context in leaves(typer.main.get_command(app), "gumiho", None):
        rows = []
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and "--help" not in parameter.opts:
                rows.append((f"`{record[0].strip()}`", " ".join(record[1].split())))
            elif record is None and not getattr(parameter, "hidden", False):
                rows.append((f"`{parameter.human_readable_name}`", str(getattr(parameter, "help", "") or "")))
        page += f"\n## {name}\n\n{described(command.help or '')}\n\n" + table(("argument or option", "meaning"), rows)
    return page


def leaves(command: Any, name: str, parent: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield every command below this one with its full name and its context."""
    context = command.context_class(command, info_name=name, parent=parent)
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command, context
        return
    for key in sorted(children):
        yield from leaves(children[key], f"{name} {key}", context)


def described(text: str) -> str:
    """Return a command's help as Markdown, its examples as code."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        joined = " ".join(paragraph.split())
        example, colon, code = joined.partition(":")
        if joined.startswith("gumiho "):
            lines.append(f"`{joined}`")
        elif colon and example in ("Example", "Examples"):
            lines.append(f"{example}: `{code.strip()}`")
        else:
            lines.append(joined.replace("<", "\\<"))
    return "\n\n".join(lines)


def api() -> str:
    """Return the page that lists the public names of the packages and the pages of modules."""
    page = "# Python\n\nThe names of the three packages, then the rooms behind them.\n"
    for package in PACKAGES:
        names = "\n".join(f"   {name}" for name in importlib.import_module(package).__all__)
        page += f"\n## {package}\n\n```{{eval-rst}}\n.. currentmodule:: {package}\n\n"
        page += f".. autosummary::\n   :toctree: api\n\n{names}\n```\n"
    listed = "\n".join(MODULES)
    return page + f"\n## Rooms\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"


def module_page(name: str) -> str:
    """Return the page of one module. Names that a package's page documents are only named there."""
    module = importlib.import_module(name)
    taken = {one for package in PACKAGES for one in importlib.import_module(package).__all__}
    public = [one for one in getattr(module, "__all__", vars(module)) if not one.startswith("_")]
    own = [
        one
        for one in public
        if getattr(getattr(module, one), "__module__", "").startswith(name) and callable(getattr(module, one))
    ]
    members = ", ".join(one for one in own if one not in taken)
    also = ", ".join(f"`{one}`" for one in own if one in taken)
    page = f"# {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n"
    page += f"   :members: {members}\n" if members else ""
    return page + "```\n" + (f"\nAlso here, on the [page of the packages](api.md): {also}.\n" if also else "")


# Heading, column, and what turns its text into a cell.
_SCORES: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("log", "source", str),
    ("model", "model", str),
    ("structures", "kind", str),
    ("forecasts", "forecasts", str),
    ("refused", "refused", str),
    ("median error, %", "median_abs_error", lambda text: f"{100 * float(text):.1f}"),
    ("worst, %", "worst_abs_error", lambda text: f"{100 * float(text):.1f}"),
    ("sampling floor, %", "sampling_floor", lambda text: f"{100 * float(text):.1f}"),
    ("inside, %", "coverage", lambda text: f"{100 * float(text):.0f}"),
    ("interval score / hazard", "interval_score_to_hazard", lambda text: f"{float(text):.2f}"),
)


def scoreboard(root: Path) -> str:
    """Return the scoreboard's page: the summary of the table that ships, if there is one."""
    page = (
        "# Scoreboard\n\nEvery forecast is judged on prompts that it was not fitted to, and on other draft structures. "
        "Fitted on a chain of 3 and half of the prompts, forecasting other chains and trees on the other half: "
        "`gumiho validate --scoreboard LOGS -o scoreboard.csv`. Errors are absolute, of tau (bonus included, micro), "
        "in % of what was measured. *Sampling floor*: the median error that a perfect model would have with as many "
        "prompts. *advised*: hmm for chains, rank for static trees, replay for dynamic ones.\n"
    )
    file = root / "docs" / "scoreboard.csv"
    if not file.exists():
        return page + "\nNo table ships yet; the notebook 03_fit_to_traces makes one in a world whose truth is known.\n"
    if (root / "docs" / "scoreboard.svg").exists():
        page += "\n![forecast against measured tau, and errors by structure](../scoreboard.svg)\n\n"
    with file.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["row"] == "summary"]
    cells = [tuple(shown(row[column]) if row[column] else "–" for _, column, shown in _SCORES) for row in rows]
    return page + table(tuple(heading for heading, _, _ in _SCORES), cells)
