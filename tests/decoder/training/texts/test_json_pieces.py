"""JSON lines and one large JSON array, piece by piece: nothing lost, no more held than a piece, faults known."""

from __future__ import annotations

import io
import itertools
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_decoder.training.texts import json_pieces
from gumiho_decoder.training.texts.json_pieces import CUT_OFF, array_pieces, line_pieces


@given(st.lists(st.text('"\\{}[],:ab\n', max_size=8), min_size=1, max_size=5), st.integers(1, 20), st.data())
def test_an_array_cut_anywhere_gives_its_whole_elements_and_says_so(contents, chunk, data):
    """Wherever a chunk of the file ends."""
    rows = [json.dumps({"text": content}).encode() for content in contents]
    whole = b"[" + b", ".join(rows) + b"]"
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "CHUNK_BYTES", chunk)
        *pieces, last = array_pieces(io.BytesIO(whole[:cut]), "f")
    assert last.fault == CUT_OFF
    # An element is known to be whole only where a comma follows it.
    ends = [len(b"[" + b", ".join(rows[: i + 1])) for i in range(len(rows))]
    wanted = [row for row, end in zip(rows, ends, strict=True) if end < cut]
    assert [piece.data for piece in pieces] == wanted


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        ('[{"a": 1}, nope, {"b": 2}]', ['{"a": 1}', "nope", '{"b": 2}']),
        ('[{"a": 1}}, {"b": 2}]', ['{"a": 1}}', '{"b": 2}']),
        ('[{"a": ]}, {"b": 2}]', ['{"a": ]}', '{"b": 2}']),
        ('[{"a": "],[{\\"}"}, 2]', ['{"a": "],[{\\"}"}', "2"]),
        ('[{"a": 1} {"b": 2}]', ['{"a": 1} {"b": 2}']),
        ('[{"a": 1},]', ['{"a": 1}', ""]),
    ],
)
def test_a_broken_element_costs_no_other(array, wanted):
    assert [piece.data.decode().strip() for piece in array_pieces(io.BytesIO(array.encode()), "f")] == wanted


def test_what_stands_behind_an_array_is_named():
    for behind, fault in ((" \n", None), (' {"text": "a"}', "text behind the array")):
        pieces = list(array_pieces(io.BytesIO(b'[{"text": "b"}]' + behind.encode()), "f"))
        assert pieces[0].data == b'{"text": "b"}' and [piece.fault for piece in pieces[1:]] == [fault] * bool(fault)


def test_the_place_of_an_element_is_its_line():
    array = b'\n[\n {"text":\n "a"\n },\n\n {"text": "b"}, {}\n]\n'
    places = [piece.place for piece in array_pieces(io.BytesIO(array), "f")]
    assert places == ["f, line 3 (element 1)", "f, line 7 (element 2)", "f, line 7 (element 3)"]


class Made(io.RawIOBase):
    """A file that is made as it is read; `taken` bytes of it were."""

    def __init__(self, parts) -> None:
        self.parts, self.left, self.taken = iter(parts), b"", 0

    def read(self, size: int = -1) -> bytes:
        while len(self.left) < size and (part := next(self.parts, None)) is not None:
            self.left += part
        part, self.left = self.left[:size], self.left[size:]
        self.taken += len(part)
        return part

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def held(pieces) -> tuple[list, int]:
    """What is found of each piece, and the most memory that it took."""
    tracemalloc.start()
    try:
        found = [(len(piece.data), piece.fault) for piece in pieces]
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_huge_array_is_streamed():
    """No more is read than the elements asked for need, nor more held than an element and a few chunks."""
    element = json.dumps({"text": "a\n" * 3000}).encode()
    count = 2000  # 18 MB
    file = Made(itertools.chain([b"[" + element], itertools.repeat(b"," + element, count - 1), [b"]"]))
    pieces = array_pieces(file, "f")
    assert next(pieces).data == element
    assert file.taken <= json_pieces.CHUNK_BYTES
    found, most = held(pieces)
    assert found == [(len(element), None)] * (count - 1)
    assert most < 8 * json_pieces.CHUNK_BYTES


@pytest.mark.parametrize("lines", [False, True])
def test_an_endless_piece_is_not_held(lines, monkeypatch):
    monkeypatch.setattr(json_pieces, "PIECE_BYTES", 1 << 18)
    body = itertools.repeat(b"a" * 10_000, 2000)  # 20 MB
    file = Made(itertools.chain([b'[{"text": "'], body, [b'"}, {}]\n']))
    pieces = line_pieces(io.BufferedReader(file), "f") if lines else array_pieces(file, "f")
    found, most = held(pieces)
    assert found == [(0, f"longer than {1 << 18} bytes"), (2, None)][: 1 if lines else 2]
    assert most < 8 * json_pieces.CHUNK_BYTES
