"""`gumiho train` as its user meets it, on a small random target."""

from __future__ import annotations

import json

import pytest


def test_train_makes_a_drafter_that_decodes_and_resume_goes_on(call, pair, tmp_path):
    lines = "".join(f"def f{i}(x):\n    return x + {i}\n\n" for i in range(70))
    (pair / "code.txt").write_text(lines)
    common = ("train", "--target", "target", "--data", "code.txt", "--length", "32", "--seed", "3", "--json")
    code, out, _ = call(*common, "--method", "medusa", "--steps", "4", "--set", "heads=3", "-o", str(tmp_path / "m"))
    result = json.loads(out)
    assert code == 0
    assert (result["steps"], len(result["heldout_accuracy"])) == (4, 3)
    assert {"tokens", "loss"} <= result.keys()
    code, out, _ = call(
        *("decode", "--target", "target", "--drafter", str(tmp_path / "m"), "--prompts", "prompts.jsonl"),
        *("--structure", "chain:3", "--max-new-tokens", "12", "--check-lossless", "--json"),
    )
    assert code == 0
    assert json.loads(out)["lossless"]["equal"] == 2


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (("--method", "oracle"), ("method", "oracle")),
        (("--method", "eagle", "--set", "heads=3"), ("heads",)),
        (("--method", "eagle", "--set", "nothing"), ("--set", "nothing")),
        (("--method", "eagle", "--steps", "2", "--set", "steps=3"), ("--set", "steps=3")),
        (("--method", "eagle", "--data", "none.txt"), ("none.txt",)),
        (("--method", "eagle", "--rate", "-1"), ("rate", "-1")),
        (("--method", "eagle", "--set", "method=gumiho"), ("--set", "method=gumiho")),
    ],
)
def test_bad_training_requests_exit_2_with_one_line(extra, words, call, pair, tmp_path):
    (pair / "code.txt").write_text("x = 1\n" * 100)
    data = () if "--data" in extra else ("--data", "code.txt")
    code, out, err = call("train", "--target", "target", *data, "-o", str(tmp_path / "x"), "--json", *extra)
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    for word in words:
        assert word in lines[0]


def test_training_writes_only_into_a_folder_of_its_own(call, pair, tmp_path):
    (pair / "code.txt").write_text("x = 1\n" * 100)
    (tmp_path / "tokenizer.json").write_text("mine")
    code, _, err = call("train", "--target", "target", "--data", "code.txt", "--method", "eagle", "-o", str(tmp_path))
    assert (code, "tokenizer.json" in err) == (2, True)
    assert (tmp_path / "tokenizer.json").read_text() == "mine"
