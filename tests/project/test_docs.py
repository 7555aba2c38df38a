"""The documentation: it builds without a warning, and what its pages compute is what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path):
    pytest.importorskip("sphinx", reason="needs the extra `docs`")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", DOCS, tmp_path / "html"]
    done = subprocess.run([*command, "-d", tmp_path / "doctrees"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    pages = {page.relative_to(tmp_path / "html").as_posix() for page in (tmp_path / "html").rglob("*.html")}
    assert {"index.html", "concepts.html", "generated/commands.html", "notebooks/00_quickstart.html"} <= pages
    assert "gumiho theorem check" in (tmp_path / "html/generated/commands.html").read_text(encoding="utf-8")
    assert "censored_at" in (tmp_path / "html/generated/trace_schema.html").read_text(encoding="utf-8")


def test_the_worked_example_computes_what_it_says(capsys: pytest.CaptureFixture[str]):
    page = (DOCS / "concepts.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    exec(compile(example, "concepts.md", "exec"), {})
    tau, macro, *survival = map(float, re.findall(r"[\d.]+", capsys.readouterr().out))
    assert (tau, round(macro, 2)) == (2.5, 2.33)
    assert [round(rate, 9) for rate in survival] == [0.8, 0.6, 0.3]
    for said in ("**2.5**", "**2.33**", "0.8, 0.6, 0.3"):
        assert said in page
