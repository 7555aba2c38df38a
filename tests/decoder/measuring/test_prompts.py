"""Prompt files: what is read, and how what cannot be read is refused."""

from __future__ import annotations

import io

import pytest

from gumiho_decoder.measuring.prompts import Prompt, read_prompts
from gumiho_theory import InputError


def write(tmp_path, text: str) -> str:
    path = tmp_path / "p.jsonl"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_prompt_and_turns_with_any_of_their_names(tmp_path):
    path = write(
        tmp_path,
        '{"prompt": "a"}\n\n{"turns": ["b", "c"], "question_id": 81, "category": "writing"}\n'
        '{"prompt": "d", "prompt_id": "x", "task": "t", "more": 1}\n',
    )
    assert read_prompts(path) == [
        Prompt("1", None, ("a",), False),
        Prompt("81", "writing", ("b", "c"), True),
        Prompt("x", "t", ("d",), False),
    ]
    assert len(read_prompts(path, limit=2)) == 2


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"prompt": "a"}\n'))
    assert read_prompts("-")[0].turns == ("a",)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "no prompt"),
        ("\n \n", "no prompt"),
        ("{", "line 1"),
        ('{"prompt": "a"}\n[]\n', "line 2"),
        ('{"text": "a"}\n', "line 1"),
        ('{"prompt": "a", "turns": ["b"]}\n', "line 1"),
        ('{"prompt": ""}\n', "line 1"),
        ('{"prompt": 3}\n', "line 1"),
        ('{"turns": []}\n', "line 1"),
        ('{"turns": ["a", 2]}\n', "line 1"),
        ('{"turns": "a"}\n', "line 1"),
        ("[" * 100_000, "line 1"),
        ('{"prompt": "\\ud800"}\n', "line 1"),
        ('{"prompt": "a", "prompt_id": "\\ud800"}\n', "line 1"),
        ('{"prompt": "a", "task": "\\udfff"}\n', "line 1"),
        ('{"prompt": "a", "prompt_id": 1}\n{"prompt": "b", "prompt_id": "1"}\n', "line 2, prompt_id"),
    ],
)
def test_what_is_no_prompt_is_refused_by_line(text, place, tmp_path):
    with pytest.raises(InputError, match=place):
        read_prompts(write(tmp_path, text))


def test_a_missing_or_binary_file_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl"):
        read_prompts(str(tmp_path / "none.jsonl"))
    (tmp_path / "b.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"b\.jsonl"):
        read_prompts(str(tmp_path / "b.jsonl"))


def test_an_endless_line_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("gumiho_decoder.measuring.prompts.LINE_CHARACTERS", 100)
    with pytest.raises(InputError, match="line 1"):
        read_prompts(write(tmp_path, '{"prompt": "' + "a" * 500 + '"}'))
