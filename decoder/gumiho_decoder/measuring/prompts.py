"""Prompt files: JSON lines with `prompt`, or `turns`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from gumiho_theory import InputError
from gumiho_theory.files import reason

T = TypeVar("T")
LINE_CHARACTERS = 1 << 22
LINES = 1_000_000


@dataclass(frozen=True)
class Prompt:
    """One prompt.

    Attributes
    ----------
    prompt_id : str
        `prompt_id` or `question_id` of the line, else its line number.
    task : str or None
        `task` or `category`.
    turns : tuple of str
        What the user says, turn by turn.
    chat : bool
        Whether it came as `turns`: then a chat template, if the tokenizer has one, applies.
    """

    prompt_id: str
    task: str | None
    turns: tuple[str, ...]
    chat: bool


def spread(rows: Sequence[T], limit: int | None) -> list[T]:
    """Return so many rows, evenly over the sequence: files are often sorted by kind of text. None: all."""
    count = len(rows) if limit is None else min(limit, len(rows))
    return [rows[index * len(rows) // count] for index in range(count)]


def read_prompts(path: str, limit: int | None = None) -> list[Prompt]:
    """Read a prompt file, or standard input for `-`.

    Raises
    ------
    InputError
        Unreadable, empty, or a line that is not a prompt: the line is named.
    """
    try:
        if path == "-":
            return _read(sys.stdin, "standard input", limit)
        with Path(path).open(encoding="utf-8") as file:
            return _read(file, path, limit)
    except OSError as error:
        raise InputError(path, reason(error), "a readable UTF-8 file of prompts") from error
    except UnicodeDecodeError as error:
        raise InputError(path, str(error), "a readable UTF-8 file of prompts") from error


def _read(file: IO[str], place: str, limit: int | None) -> list[Prompt]:
    prompts: dict[str, Prompt] = {}
    for number in range(1, LINES + 1):
        line = file.readline(LINE_CHARACTERS)
        if not line or len(prompts) == limit:
            break
        where = f"{place}, line {number}"
        if len(line) == LINE_CHARACTERS:
            raise InputError(where, f"{LINE_CHARACTERS} characters or more", "a shorter line")
        if line.strip():
            prompt = _prompt(line, where, number)
            if prompt.prompt_id in prompts:
                raise InputError(f"{where}, prompt_id", repr(prompt.prompt_id), "an id of its own")
            prompts[prompt.prompt_id] = prompt
    if not prompts:
        raise InputError(place, "no prompt", "JSON lines with `prompt` or `turns`")
    return list(prompts.values())


def _prompt(line: str, where: str, number: int) -> Prompt:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(where, str(error), "one JSON object") from error
    if not isinstance(row, dict) or ("prompt" in row) == ("turns" in row):
        raise InputError(where, line.strip(), "one JSON object with either `prompt` or `turns`")
    turns = [row["prompt"]] if "prompt" in row else row["turns"]
    if not isinstance(turns, list) or not turns or not all(isinstance(t, str) and t for t in turns):
        raise InputError(where, line.strip(), "a text that is not empty, or a list of such")
    prompt_id = str(row.get("prompt_id", row.get("question_id", number)))
    task = row.get("task", row.get("category")) or None
    task = None if task is None else str(task)
    for text in (prompt_id, task or "", *turns):
        # Half of a surrogate pair (JSON can say "\ud800") is no text: neither tokenizer nor trace could hold it.
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(where, ascii(text), "text that UTF-8 can hold")
    return Prompt(prompt_id, task, tuple(turns), "turns" in row)
