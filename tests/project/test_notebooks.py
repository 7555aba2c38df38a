"""The notebooks: stripped in git, built from public names only, and each runs to its end (on small settings)."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PACKAGES = ("gumiho_theory", "gumiho_simulator", "gumiho_decoder")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def code(path: Path) -> ast.Module:
    sources = "\n".join("".join(cell["source"]) for cell in cells(path, "code"))
    return ast.parse(re.sub(r"^%.*$", "", sources, flags=re.M))  # magics are not Python


def test_there_are_notebooks():
    assert NOTEBOOKS


@every_notebook
def test_a_notebook_is_stripped(path: Path):
    for cell in cells(path, "code"):
        assert cell["outputs"] == [] and cell["execution_count"] is None
        assert cell["metadata"] == {}


@every_notebook
def test_a_notebook_states_its_run_time_and_ends_with_what_was_learnt(path: Path):
    text = ["".join(cell["source"]) for cell in cells(path, "markdown")]
    assert re.search(r"\*\*Run time:\*\* about [^@]+ on two cores", text[0])
    assert text[-1].startswith("## What was learnt")
    assert "bonus" in text[0]  # no tau without its convention


@every_notebook
def test_a_notebook_uses_public_names_only(path: Path):
    tree = code(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_"), f"{path.name} uses .{node.attr}"
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith(PACKAGES) for name in node.names), "import names, not modules"
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(PACKAGES):
            continue
        assert node.module in PACKAGES, f"{path.name} imports from {node.module}: the packages' own names and rooms do"
        module = importlib.import_module(node.module)
        for name in node.names:
            assert name.name in module.__all__ or is_room(module, name.name), f"{node.module}.{name.name}"


def is_room(package: ModuleType, name: str) -> bool:
    return (Path(package.__file__).parent / name / "__init__.py").is_file() and hasattr(package, name)


@every_notebook
def test_links_of_a_notebook_lead_somewhere(path: Path):
    for cell in cells(path, "markdown"):
        for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", "".join(cell["source"])):
            assert (FOLDER / link).exists(), link


def run(notebook: Any) -> Any:
    from nbclient import NotebookClient

    resources = {"metadata": {"path": str(FOLDER)}}
    return NotebookClient(notebook, timeout=900, kernel_name="python3", resources=resources).execute()


# What the client and the kernel's packages warn of is not ours.
quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")


@quiet
def test_a_notebook_that_raises_is_noticed():
    import nbformat
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")]))


@pytest.mark.slow
@quiet
@every_notebook
def test_a_notebook_runs_to_its_end(path: Path, monkeypatch: pytest.MonkeyPatch):
    import nbformat

    monkeypatch.setenv("GUMIHO_NOTEBOOK_SMALL", "1")  # the kernel inherits it
    done = run(nbformat.read(path, as_version=4))  # raises as a cell does
    drawn = [key for cell in done.cells for out in cell.get("outputs", []) for key in out.get("data", {})]
    assert "image/png" in drawn
