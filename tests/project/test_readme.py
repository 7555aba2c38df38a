"""The promises of README and file list that can be checked by reading."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILES = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")


def tracked() -> list[str]:
    try:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return listed.stdout.split("\n")


def tree_lines() -> list[str]:
    return FILES.split("```")[1].strip("\n").splitlines()


def tree() -> list[str]:
    """The paths of the file tree: a folder at the margin, its files indented below it."""
    paths, folder = [], ""
    for line in tree_lines():
        name = line.split()[0]
        folder = folder if line.startswith(" ") else name
        paths.append(folder + name if line.startswith(" ") else name)
    return paths


def test_the_file_tree_names_every_module_and_no_other():
    folders = ("theory/", "simulator/", "decoder/", "benchmarks/")
    modules = {
        name
        for name in tracked()
        if name.startswith(folders) and name.endswith(".py") and not Path(name).name.startswith("_")
    }
    named = {path for path in tree() if path.endswith(".py")}
    assert named == modules


def test_the_file_tree_says_something_of_each_line():
    assert all(len(line.split(maxsplit=1)) == 2 for line in tree_lines())


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
