"""Writes docs/files.md, the house as a tree: `python docs/files.py`. Every line is the first line of that module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("theory/gumiho_theory", "simulator/gumiho_simulator", "decoder/gumiho_decoder")
HEAD = """# Files

The house, made by `python docs/files.py` from the first line of every module. A folder is a room; its line says
what the room is for. Data flows one way: simulator and decoder know the theory, not each
other; only the decoder's commands, which assemble `gumiho`, show what both find.

"""


def first_line(module: Path) -> str:
    """Return the first line of a module's docstring, without its full stop."""
    said = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    if not said:
        raise SystemExit(
            f"{module.relative_to(ROOT)}: found no docstring, wanted a first line that says what it is for"
        )
    return said.splitlines()[0].rstrip(".")


def lines(folder: Path, depth: int) -> Iterator[tuple[int, str, str]]:
    """Yield (depth, name, first line) of a folder, then of what is in it: modules first, then rooms."""
    room = folder / "__init__.py"
    yield depth, f"{folder.name}/", first_line(room)
    for module in sorted(folder.glob("*.py")):
        if module != room:
            yield depth + 1, module.name, first_line(module)
    for inner in sorted(folder.iterdir()):
        if (inner / "__init__.py").is_file():
            yield from lines(inner, depth + 1)


def page() -> str:
    """Return the page as it should be."""
    text = HEAD
    for package in PACKAGES:
        rows = list(lines(ROOT / package, 0))
        width = max(2 * depth + len(name) for depth, name, _ in rows) + 2
        text += "```\n" + "".join(f"{'  ' * depth + name:<{width}}{said}\n" for depth, name, said in rows) + "```\n\n"
    programs = [(f"benchmarks/{path.name}", first_line(path)) for path in sorted((ROOT / "benchmarks").glob("*.py"))]
    width = max(len(name) for name, _ in programs) + 2
    return text + "```\n" + "".join(f"{name:<{width}}{said}\n" for name, said in programs) + "```\n"


if __name__ == "__main__":
    (ROOT / "docs" / "files.md").write_text(page(), encoding="utf-8")
