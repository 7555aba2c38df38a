"""A log file as entries: one line of text, or one JSON object, at a time and within bounded memory."""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from gumiho_theory import InputError
from gumiho_theory.files import MAX_JSON_BYTES, reason

MAX_LINE = 2**24
_BEGINNING = 2**16
_MAX_TEXT = 2**14  # of a line that is no JSON object
# An object or an array of them, unlike a line of text that begins with a date in brackets.
_JSON = re.compile(r'\{\s*(?:["}]|$)|\[\s*(?:[{\]]|$)')
_PROBED = 8  # lines looked at to tell JSON lines from one large document


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a log, stripped, or one object of a JSON document.

    The number is that of the line, or of the object within the document, from 1. The text is "" for an object of a
    document, `value` the JSON object that either is, None for text.
    """

    number: int
    text: str
    value: dict[str, Any] | None


@dataclass(frozen=True)
class LogFile:
    """A log, one JSON document or lines, that can be read again and again; nothing of it is held."""

    path: str
    document: bool

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> LogFile:
        """Look at a file's first lines; InputError where it cannot be read, or is one JSON value of over 64 MiB."""
        name = os.fspath(path)
        with _opened(name) as file:
            size = os.fstat(file.fileno()).st_size
            _check_text(name, file.read(_BEGINNING))
            file.seek(0)
            lines = (text for _, text in _lines(file) if text != "")
            probed = [text for _, text in zip(range(_PROBED), lines, strict=False)]
        if not probed or not _JSON.match(probed[0]):
            return cls(name, False)
        # A first line that stands for itself makes JSON lines; a broken one may still be followed by some.
        if _objects(probed[0]) or (size > MAX_JSON_BYTES and any(map(_objects, probed[1:]))):
            return cls(name, False)
        if size > MAX_JSON_BYTES:
            wanted = f"JSON lines, or one JSON value of at most {MAX_JSON_BYTES} bytes"
            raise InputError(name, f"one JSON value of {size} bytes", wanted)
        return cls(name, bool(_objects(_whole(name))))

    @property
    def unit(self) -> str:
        """What an entry's number counts."""
        return "object" if self.document else "line"

    def entries(self) -> Iterator[Entry]:
        """Yield the entries; blank lines are left out, and text beyond 16 KiB of a line is cut off."""
        if self.document:
            for number, value in enumerate(_objects(_whole(self.path)), start=1):
                yield Entry(number, "", value)
            return
        with _opened(self.path) as file:
            for number, text in _lines(file):
                if text.startswith(("{", "[")) and (values := _objects(text)):
                    yield from (Entry(number, text, value) for value in values)
                elif text not in ("", "[", "]"):
                    yield Entry(number, text[:_MAX_TEXT], None)


def _check_text(path: str, beginning: bytes) -> None:
    """Refuse text that would be read as one line, or as none."""
    if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(path, "UTF-16 or UTF-32 text, by its byte order mark", "UTF-8: iconv -f UTF-16 -t UTF-8")
    if b"\r" in beginning.replace(b"\r\n", b"").rstrip(b"\r") and b"\n" not in beginning:
        raise InputError(path, "lines that end in a bare carriage return", "line feeds: tr '\\r' '\\n'")


def _opened(path: str) -> BinaryIO:
    try:
        # A pipe could be read once only, and opening one waits for a writer.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(path, "a folder or a device", "a log file")
        return open(path, "rb")
    except OSError as error:
        raise InputError(path, reason(error), "a readable log file") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(repr(path), "a null character", "a usable file name") from error


def _lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield numbered lines, stripped; of a line that is too long only its beginning, marked as cut."""
    number = 0
    while raw := file.readline(MAX_LINE + 1):
        number += 1
        cut = len(raw) > MAX_LINE
        while cut and not raw.endswith(b"\n") and (rest := file.readline(MAX_LINE)):
            raw = raw[:80] + b"..." + rest[-1:]
        text = raw.decode("utf-8", errors="replace").strip()
        yield number, (text.lstrip("\ufeff") if number == 1 else text)


def _whole(path: str) -> str:
    with _opened(path) as file:
        return file.read(MAX_JSON_BYTES).decode("utf-8-sig", errors="replace")


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON object that a text is, or the objects of the array that it is; else nothing."""
    try:
        # A comma after an object: one line of an array written object by object.
        value = json.loads(text.strip().removesuffix(","))
    except (ValueError, RecursionError):
        return []
    values = value if isinstance(value, list) else [value]
    return values if all(isinstance(one, dict) for one in values) else []
