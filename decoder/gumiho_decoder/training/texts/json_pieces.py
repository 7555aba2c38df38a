"""The objects of a file of JSON one at a time, in bounded memory: lines, or the elements of one large array."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

PIECE_BYTES = 1 << 24
CHUNK_BYTES = 1 << 18
CUT_OFF = "cut off: the file ends within the array"


class Piece(NamedTuple):
    """What should be one JSON object: where it stands, its bytes, and why they are of no use where that is known."""

    place: str
    data: bytes
    fault: str | None = None


def too_long() -> str:
    """Return what is said of a piece that is longer than any that is read."""
    return f"longer than {PIECE_BYTES} bytes"


def line_pieces(file: BinaryIO, path: str) -> Iterator[Piece]:
    """Yield the lines of a file that are not blank; of one longer than PIECE_BYTES only that it is so."""
    number = 0
    while line := file.readline(PIECE_BYTES + 1):
        number += 1
        place = f"{path}, line {number}"
        if len(line) > PIECE_BYTES and not line.endswith(b"\n"):
            while not line.endswith(b"\n") and (line := file.readline(PIECE_BYTES)):
                pass
            yield Piece(place, b"", too_long())
        elif line.strip():
            yield Piece(place, line)


# Within a string: up to its end, to the end of what was read, or to a backslash whose partner was not read yet.
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_MARK = re.compile(rb'["{}\[\],]')
_DEEPER = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def array_pieces(file: BinaryIO, path: str) -> Iterator[Piece]:
    """Yield what stands between the commas of a JSON array, reading CHUNK_BYTES at a time.

    Only strings and brackets are looked at, so that a broken element seldom costs another. No more of an element is
    kept than PIECE_BYTES. Where the file ends before the array does, the last piece says so.
    """
    element = _Element(path)
    depth, inside, rest = 0, False, b""  # depth 1: between the elements
    while read := file.read(CHUNK_BYTES):
        chunk, rest, at, start = rest + read, b"", 0, 0
        while at < len(chunk):
            if inside:
                at = _STRING.match(chunk, at).end()
                if chunk[at:] == b"\\":
                    chunk, rest = chunk[:at], b"\\"
                inside = at == len(chunk)
                at += 1
                continue
            found = _MARK.search(chunk, at)
            if found is None:
                break
            mark, at = found.group(), found.end()
            if mark == b"}" and depth == 1:
                continue  # one too many: its element is broken, but the array goes on
            depth += _DEEPER.get(mark, 0)
            inside = mark == b'"'
            if depth == 1 and mark == b"[":
                element.add(chunk[:at])  # what opens the array; it is no piece, but holds lines
                element.end()
                start = at
            elif depth == 0 or (depth == 1 and mark == b","):
                element.add(chunk[start : at - 1])
                yield element.end()
                start = at
            if depth == 0:
                element.add(chunk[at:] + file.read(CHUNK_BYTES))
                if element.size:
                    yield element.end("text behind the array")
                return
        element.add(chunk[start:])
    yield element.end(CUT_OFF)


class _Element:
    """The element of an array that is being read."""

    def __init__(self, path: str) -> None:
        self.path, self.number, self.line = path, 0, 1
        self._reset()

    def _reset(self) -> None:
        self.parts: list[bytes] = []
        self.size = self.newlines = 0

    def add(self, part: bytes) -> None:
        """Take up more of it; beyond PIECE_BYTES only how much there was."""
        if not self.size:
            text = part.lstrip()  # it begins where its text does
            self.line += part.count(b"\n") - text.count(b"\n")
            part = text
        self.size += len(part)
        self.newlines += part.count(b"\n")
        if self.size > PIECE_BYTES:
            self.parts = []
        else:
            self.parts.append(part)

    def end(self, fault: str | None = None) -> Piece:
        """Return it, and begin the next."""
        place = f"{self.path}, line {self.line} (element {self.number})"
        if self.size > PIECE_BYTES:
            fault = fault or too_long()
        piece = Piece(place, b"" if fault else b"".join(self.parts), fault)
        self.number += 1
        self.line += self.newlines
        self._reset()
        return piece
