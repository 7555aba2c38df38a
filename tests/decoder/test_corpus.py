"""The training text and the demo's prompts: pinned, licensed, and apart from each other."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile

import pytest

from gumiho_decoder.tiny import PROMPTS, corpus
from gumiho_theory import InputError

CODE = "import os\n\n\n" + "".join(f"def function_{i}(argument):\n    return argument\n\n\n" for i in range(20))


def test_every_source_is_pinned_and_permissively_licensed():
    manifest = corpus.read_manifest()
    permissive = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "PSF-2.0"}
    for package in [*manifest["train"], *manifest["heldout"]]:
        assert package["licence"] in permissive
        assert re.fullmatch(r"[0-9a-f]{64}", package["sha256"])
        assert package["file"].startswith(package["name"].lower().replace("-", "_").replace(".", "_"))
    names = [{p["name"].lower() for p in manifest[part]} for part in ("train", "heldout")]
    assert names[0].isdisjoint(names[1])


def test_shipped_prompts_come_from_held_out_packages_only():
    rows = [json.loads(line) for line in PROMPTS.read_text(encoding="utf-8").splitlines()]
    heldout = {p["name"] for p in corpus.read_manifest()["heldout"]}
    assert len(rows) >= 48
    assert {row["task"] for row in rows} == heldout
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


def test_a_prompt_ends_with_the_head_of_a_function_and_was_not_trained_on():
    files = [("p/a.py", CODE), ("p/b.py", CODE.replace("function", "other"))]
    rows = list(corpus.cut_prompts("p", files, seen="", count=3, seed=0))
    assert len(rows) == 3
    for row in rows:
        assert re.fullmatch(r"def (function|other)_\d+\(argument\):", row["prompt"].splitlines()[-1])
        assert 12 <= len(row["prompt"].splitlines()) <= 31
    again = list(corpus.cut_prompts("p", files, seen=CODE, count=3, seed=0))
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
