"""Training data: files read as documents; what cannot be used is counted and named, never dropped unsaid."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from gumiho_decoder.training.texts.json_pieces import Piece, array_pieces, line_pieces
from gumiho_theory import InputError
from gumiho_theory.files import reason

KEYS = ("text", "prompt", "messages", "conversations", "turns")
ROLES = {"system": "system", "user": "user", "assistant": "assistant"}
SHAREGPT_ROLES = {**ROLES, "human": "user", "gpt": "assistant"}
TEXT_BYTES = 1 << 30
NAMED = 3
OPENS = "opens with the assistant: kept from the first question on"
_BOM = b"\xef\xbb\xbf"
_JSON_NAMES = frozenset({".json", ".jsonl", ".ndjson"})
_SURROGATE = re.compile("[\ud800-\udfff]")
# Which role may follow which.
_NEXT = {None: ("system", "user"), "system": ("user",), "user": ("assistant",), "assistant": ("user",)}


@dataclass(frozen=True)
class Turn:
    """Who says what; a `text` is nobody's."""

    role: Literal["system", "user", "assistant", "text"]
    content: str


@dataclass(frozen=True)
class Document:
    """A text, which is one turn, or a conversation: a system turn or none, then user and assistant by turns.

    Raises
    ------
    InputError
        Turns in another order, or none of a user.
    """

    turns: tuple[Turn, ...]

    def __post_init__(self) -> None:
        roles = [turn.role for turn in self.turns]
        ordered = all(role in _NEXT.get(last, ()) for last, role in zip([None, *roles], roles, strict=False))
        if roles != ["text"] and not (ordered and "user" in roles):
            raise InputError("document", " ".join(map(str, roles)) or "no turn", "a text, or user and assistant turns")

    @property
    def sha256(self) -> bytes:
        """Over roles and contents: that of the same document in another file is the same."""
        return hashlib.sha256(json.dumps([(turn.role, turn.content) for turn in self.turns]).encode()).digest()


@dataclass
class Report:
    """What was done with the data and what was wrong with it; filled while it is read.

    Attributes
    ----------
    counts : Counter of str
        How often each thing happened.
    places : dict of str to list of str
        Where it happened the first `NAMED` times.
    """

    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, list[str]] = field(default_factory=dict)

    def note(self, what: str, place: str) -> None:
        """Count one more."""
        self.counts[what] += 1
        named = self.places.setdefault(what, [])
        if len(named) < NAMED:
            named.append(place)

    def lines(self) -> list[str]:
        """Return one line for each thing that happened, in the order in which they first did."""
        return [
            f"{what}: {count} ({'; '.join(self.places[what])}{'; …' if count > NAMED else ''})"
            for what, count in self.counts.items()
        ]

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Return counts and places as JSON values."""
        return {what: {"count": count, "first": self.places[what]} for what, count in self.counts.items()}


def read_documents(paths: Sequence[str], report: Report) -> Iterator[Document]:
    """Yield the documents of files, one after another, in bounded memory (a text of up to TEXT_BYTES is held whole).

    A file whose content begins as such is JSON lines, or one JSON array, of objects that each have exactly one of
    `text`; `prompt`, with `completion` or `response` or without; `messages` (role, content); `conversations` (from,
    value); `turns` (texts of user and assistant by turns; a file of questions, where all turns are a user's, is for
    decoding). Any other file is one text, but for one that calls itself JSON by its name. The report says which it was.

    A conversation with a faulty turn is kept up to the last answer before it. One that opens with the assistant, as
    the later pieces of split ones do, is kept from its first question on.

    Raises InputError: A file that cannot be read, or with nothing of use in it.
    """
    for path in paths:
        before = report.counts.copy()
        try:
            with _opened(path) as file:
                yield from _documents(path, file, report)
        except OSError as error:
            raise InputError(path, reason(error), "a readable file of training data") from error
        faults = report.counts - before
        if not faults["read"]:
            listed = ", ".join(
                f"{what}: {count}" for what, count in faults.items() if what != "skipped" and what[:4] != "file"
            )
            wanted = f"a text, or JSON objects with one of {', '.join(KEYS)}"
            raise InputError(path, f"nothing of use ({listed or 'it is blank'})", wanted)


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except ValueError as error:
        raise InputError(repr(path), "a null character", "a usable file name") from error


def _documents(path: str, file: BinaryIO, report: Report) -> Iterator[Document]:
    kind = _kind(path, file)
    report.note(f"file of {kind}", path)
    if kind == "text":
        found: Iterable[Document | None] = [_text(path, file, report)]
    else:
        pieces = (array_pieces if kind == "a JSON array" else line_pieces)(file, path)
        found = (_document(piece, report) for piece in pieces)
    for document in found:
        report.note("skipped" if document is None else "read", path)
        if document is not None:
            yield document


def _kind(path: str, file: BinaryIO) -> str:
    """Return what a file is, and leave it where its content begins."""
    start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    file.seek(start)
    head = file.read(1 << 16).lstrip()
    file.seek(start)
    if head[:1] == b"[" and head[1:].lstrip()[:1] == b"{":
        return "a JSON array"
    if Path(path).suffix.lower() in _JSON_NAMES:
        return "JSON lines"
    if head[:1] != b"{":
        return "text"
    first = next(line_pieces(file, path))
    file.seek(start)
    row = None if first.fault else _parsed(first.data)
    return "JSON lines" if isinstance(row, dict) and not row.keys().isdisjoint(KEYS) else "text"


def _text(path: str, file: BinaryIO, report: Report) -> Document | None:
    data = file.read(TEXT_BYTES + 1)
    if len(data) > TEXT_BYTES:
        raise InputError(path, f"more than {TEXT_BYTES} bytes", "a text of at most that: cut it into several files")
    try:
        content = data.decode("utf-8")
    except UnicodeDecodeError as error:
        report.note("no UTF-8", f"{path}, byte {error.start}")
        return None
    fault = _content_fault(content)
    if fault is not None:
        report.note(fault, path)
        return None
    return Document((Turn("text", content),))


def _parsed(data: bytes) -> object:
    """Return the JSON value, or None where there is none (null is no object either)."""
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _document(piece: Piece, report: Report) -> Document | None:
    said = piece.fault or _said(_parsed(piece.data))
    if isinstance(said, str):
        report.note(said, piece.place)
        return None
    turns: list[Turn] = []
    for number, (role, content) in enumerate(said, 1):
        fault = _turn_fault(turns[-1].role if turns else None, role, content)
        if fault is None:
            turns.append(Turn(role, content))
        elif fault == OPENS:
            report.note(fault, piece.place)
        else:
            report.note(fault, f"{piece.place}, turn {number}")
            while turns and turns[-1].role != "assistant":
                turns.pop()
            if turns:
                report.note("shortened: kept up to the last answer before a faulty turn", piece.place)
            return Document(tuple(turns)) if turns else None
    if not turns or turns[-1].role == "system":
        report.note("no turn of a user", piece.place)
        return None
    return Document(tuple(turns))


def _said(row: object) -> list[tuple[Any, Any]] | str:
    """Return (role, content) of each turn, None for a role that is none; or what is wrong with the object."""
    if not isinstance(row, dict):
        return "broken JSON, or no object"
    given = [key for key in KEYS if key in row]
    if len(given) != 1 or ("completion" in row and "response" in row):
        return f"not exactly one of {', '.join(KEYS)}" if len(given) != 1 else "both completion and response"
    value = row[given[0]]
    if given == ["text"]:
        return [("text", value)]
    if given == ["prompt"]:
        return [("user", value), *(("assistant", row[key]) for key in ("completion", "response") if key in row)]
    if not isinstance(value, list):
        return f"{given[0]} is no list"
    if given == ["turns"]:
        return [(("user", "assistant")[i % 2], text) for i, text in enumerate(value)]
    names = ("role", "content", ROLES) if given == ["messages"] else ("from", "value", SHAREGPT_ROLES)
    return [_turn(turn, *names) for turn in value]


def _turn(turn: object, who: str, what: str, roles: dict[str, str]) -> tuple[str | None, object]:
    if not isinstance(turn, dict):
        return None, None
    role = turn.get(who)
    return roles.get(role) if isinstance(role, str) else None, turn.get(what)


def _turn_fault(last: str | None, role: str | None, content: object) -> str | None:
    if role is None:
        return "wrong role"
    if role == "assistant" and last in (None, "system"):
        return OPENS
    if role != "text" and role not in _NEXT[last]:
        return "wrong order"
    return _content_fault(content)


def _content_fault(content: object) -> str | None:
    if not isinstance(content, str):
        return "content is no text"
    if not content.strip():
        return "empty turn"
    if "\0" in content:
        return "null byte"
    # JSON can say "\ud800"; no tokenizer could take it.
    return "half of a surrogate pair" if _SURROGATE.search(content) else None
