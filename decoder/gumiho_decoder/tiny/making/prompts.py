"""Prompts cut out of held-out packages, of five kinds of text: four places in code, and prose."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gumiho_decoder.tiny.making.corpus import wheel_readme, wheel_texts

KINDS = ("function", "class", "body", "docstring", "readme")
_LINES = (12, 31)  # of a prompt: at least, and below
_CHARACTERS = (200, 2400)
_PER_FILE = 6  # of one kind, so that the prompts of a package are not all neighbours


def cut(package: str, wheel: Path, seen: str, count: int, seed: int) -> dict[str, list[dict[str, str]]]:
    """Return up to `count` prompts of each kind from a wheel, in random order within a kind.

    A prompt is 12 to 30 lines of one file that end with: the head of a function, or of a class, a statement amid a
    function, the first line of a docstring of several, or a line of the project's description. None whose last lines
    occur in `seen`, the training text, is taken.
    """
    texts = [*wheel_texts(wheel), ("README", wheel_readme(wheel))]
    return {kind: list(_cut_kind(package, texts, kind, seen, count, seed)) for kind in KINDS}


def _cut_kind(
    package: str, texts: list[tuple[str, str]], kind: str, seen: str, count: int, seed: int
) -> Iterator[dict[str, str]]:
    places = [(name, text, end) for name, text in texts for end in _ends(name, text, kind)]
    rng = np.random.default_rng((seed, KINDS.index(kind), *package.encode()))
    low, high = _CHARACTERS
    taken: dict[str, int] = {}
    for name, text, end in (places[i] for i in rng.permutation(len(places))):
        if (number := sum(taken.values())) == count:
            return
        lines = text.splitlines(keepends=True)
        prompt = "".join(lines[max(0, end - int(rng.integers(*_LINES))) : end]).rstrip("\n")
        tail = "".join(lines[end - 3 : end])
        most = count if name == "README" else _PER_FILE
        if low <= len(prompt) <= high and taken.get(name, 0) < most and tail not in seen:
            taken[name] = taken.get(name, 0) + 1
            about = {"prompt_id": f"{package}-{kind}-{number + 1}", "task": kind}
            yield about | {"prompt": prompt, "source": f"{package}: {name}:{end}"}


def _ends(name: str, text: str, kind: str) -> Iterator[int]:
    """Yield the numbers of the lines (from 1) that prompts of a kind may end with; at least 12."""
    if (name == "README") != (kind == "readme"):
        return
    if kind == "readme":
        found = (number for number, line in enumerate(text.splitlines(), 1) if line.strip())
    else:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):  # of another Python
            return
        found = (end for node in ast.walk(tree) for end in _ends_in(node, kind))
    yield from (end for end in found if end >= _LINES[0])


def _ends_in(node: ast.AST, kind: str) -> Iterator[int]:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    first, is_class = node.body[0], isinstance(node, ast.ClassDef)
    if kind == ("class" if is_class else "function") and first.lineno > node.lineno:
        yield first.lineno - 1
    elif kind == "docstring" and ast.get_docstring(node) and (first.end_lineno or 0) - first.lineno >= 3:
        yield first.lineno
    elif kind == "body" and not is_class:
        yield from (statement.end_lineno or 0 for statement in node.body[1:-1])
