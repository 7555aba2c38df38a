"""The training text and the demo's prompts: pinned, licensed, and apart from each other."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile

import pytest

from gumiho_decoder.embedded import PROMPTS
from gumiho_decoder.tiny.making import corpus
from gumiho_decoder.tiny.making import prompts as prompt_cutter
from gumiho_theory import InputError

GROUPS = ("train", "heldout", "measured")
CODE = "import os\n\n\n" + "".join(f"def function_{i}(argument):\n    return argument\n\n\n" for i in range(20))


def test_every_source_is_pinned_and_permissively_licensed():
    manifest = corpus.read_manifest()
    permissive = {
        "MIT",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "Apache-2.0",
        "PSF-2.0",
        "Apache-2.0 OR BSD-2-Clause",
        "MIT OR Apache-2.0",
    }
    for package in (p for group in GROUPS for p in manifest[group]):
        assert package["licence"] in permissive
        assert re.fullmatch(r"[0-9a-f]{64}", package["sha256"])
        assert package["file"].startswith(package["name"].lower().replace("-", "_").replace(".", "_"))
    names = [{p["name"].lower() for p in manifest[part]} for part in GROUPS]
    assert len(set().union(*names)) == sum(map(len, names))


def test_shipped_prompts_come_from_held_out_packages_only():
    rows = [json.loads(line) for line in PROMPTS.read_text(encoding="utf-8").splitlines()]
    heldout = {p["name"] for p in corpus.read_manifest()["heldout"]}
    assert len(rows) >= 48
    assert {row["source"].split(":")[0] for row in rows} == heldout
    assert len({row["prompt"] for row in rows}) == len({row["prompt_id"] for row in rows}) == len(rows)


def wheel(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_tests_vendored_copies_and_data_tables_are_left_out(tmp_path):
    kept = {"p/a.py": CODE, "p/sub/b.py": CODE + "# b\n"}
    dropped = {
        "p/tests/test_a.py": CODE,
        "p/test_b.py": CODE,
        "p/_vendor/c.py": CODE,
        "p/table.py": "T = [\n" + "    0, 1, 2, 3, 4, 5, 6, 7,\n" * 50 + "]\n",
        "p/short.py": "x = 1\n",
        "p/readme.txt": CODE,
    }
    texts = corpus.wheel_texts(wheel(tmp_path / "p.whl", kept | dropped))
    assert texts == sorted(kept.items())


def metadata(description: str) -> dict[str, str]:
    return {"p-1.dist-info/METADATA": f"Metadata-Version: 2.1\nName: p\n\n{description}"}


def test_prompts_of_every_kind_end_where_they_say_and_were_not_trained_on(tmp_path):
    other = CODE.replace("function", "other")
    prose = "".join(f"Line {i} of the description, in plain words.\n" for i in range(40))
    path = wheel(tmp_path / "p.whl", {"p/a.py": CODE, "p/b.py": other, **metadata(prose)})
    rows = prompt_cutter.cut("p", path, seen="", count=3, seed=0)
    ends = {
        "function": r"def (function|other)_\d+\(argument\):",
        "readme": r"Line \d+ of the description, in plain words\.",
    }
    for kind, pattern in ends.items():
        assert len(rows[kind]) == 3
        for row in rows[kind]:
            assert row["task"] == kind
            assert re.fullmatch(pattern, row["prompt"].splitlines()[-1])
            assert 12 <= len(row["prompt"].splitlines()) <= 30
    again = prompt_cutter.cut("p", path, seen=CODE, count=3, seed=0)["function"]
    assert again
    assert all("other" in row["prompt"].splitlines()[-1] for row in again)


def test_another_standard_library_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(corpus, "stdlib_texts", lambda: [("a.py", CODE)])
    with pytest.raises(InputError, match="standard library"):
        list(corpus.training_texts(tmp_path))


def test_a_wheel_with_the_right_hash_is_not_fetched_again(monkeypatch, tmp_path):
    path = wheel(tmp_path / "p-1-py3-none-any.whl", {"p/a.py": CODE})
    package = {"name": "p", "version": "1", "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    calls = []
    monkeypatch.setattr(corpus.subprocess, "run", lambda *a, **k: calls.append(a))
    corpus.fetch([package], tmp_path)
    assert not calls
    corpus.fetch([{**package, "sha256": "0" * 64}], tmp_path)
    assert "--require-hashes" in calls[0][0]
