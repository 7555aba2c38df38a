"""The promises of the README and of the house that can be checked by reading."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_ENTRIES = 13


def tracked() -> list[str]:
    try:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return listed.stdout.split("\n")


def test_the_list_of_files_is_what_the_files_say():
    found = importlib.util.spec_from_file_location("files", ROOT / "docs" / "files.py")
    files = importlib.util.module_from_spec(found)
    found.loader.exec_module(files)
    assert (ROOT / "docs" / "files.md").read_text(encoding="utf-8") == files.page(), "stale: run python docs/files.py"


def rooms(package: Path) -> list[Path]:
    return [package, *(path.parent for path in package.rglob("__init__.py") if path.parent != package)]


PACKAGES = [ROOT / part / f"gumiho_{part}" for part in ("theory", "simulator", "decoder")]


def test_the_readme_s_tree_names_every_room_of_the_three_packages():
    tree = README.partition("## The house")[2]
    for package in PACKAGES:
        part = re.search(rf"{package.parent.name}/{package.name}/.*?(?=\n\S)", tree, re.S).group(0)
        named = set(re.findall(r"(?<![\w/])(\w+)/(?=\s)", part))
        assert named == {room.name for room in package.iterdir() if (room / "__init__.py").is_file()}


@pytest.mark.parametrize("room", [room for package in PACKAGES for room in rooms(package)], ids=lambda room: room.name)
def test_a_room_shows_about_a_dozen_entries_and_no_family_of_prefixes(room: Path):
    modules = [path.stem for path in room.glob("*.py") if not path.stem.startswith("__")]
    inner = [path.name for path in room.iterdir() if (path / "__init__.py").is_file()]
    assert len(modules) + len(inner) <= MOST_ENTRIES, sorted(modules + inner)
    families = Counter(name.partition("_")[0] for name in modules if "_" in name)
    assert all(count <= 2 for count in families.values()), families
    assert not [name for name in modules if name.startswith(f"{room.name}_")]  # a name does not repeat its room
    assert ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))


def test_no_module_has_the_name_of_something_that_its_room_hands_out():
    for package in PACKAGES:
        for room in rooms(package):
            names = ".".join(room.relative_to(package.parent).parts)
            handed = set(getattr(importlib.import_module(names), "__all__", ()))
            assert not handed & {path.stem for path in room.iterdir()}, names


def test_every_relative_link_leads_somewhere():
    for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", README) + re.findall(r'src="(?!https?://)([^"]+)"', README):
        assert (ROOT / link).exists(), link


def test_the_python_example_runs(capsys):
    example = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    assert len(example.strip().splitlines()) <= 10
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out


def test_ci_runs_the_readmes_test_command():
    assert "make test" in README
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "make test"


def test_versions_agree():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_no_file_names_a_path_of_some_machine():
    for name in tracked():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".json", ".cff", ".j2"} and path.exists():
            homes = "|".join(f"/{place}/" for place in ("home", "root", "work"))  # split, so as not to find itself
            assert not re.search(homes, path.read_text(encoding="utf-8")), name
