"""The text log of Gumiho's official evaluation."""

from __future__ import annotations

import re

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import digits

_LENGTH = re.compile(r"accept_length \(Current/Mean\):\s*(\d+(?:\.\d+)?)\s*/")
_TOKENS = re.compile(r"total_token:\s*(\d+)")


class GumihoLog(Importer):
    """Turns, each a group: two lines with new tokens / the last cycle's 0-based index, and new tokens.

    For R cycles the printed length is R / (R - 1) times tau; both lines together give R back. An output of
    one cycle is divided by 1, too, and looks like one of two cycles.
    """

    name = "gumiho-log"
    clusters = "turns"

    def __init__(self) -> None:
        self._length: tuple[int, str] | None = None

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the line prints an accepted length."""
        return entry.value is None and _LENGTH.search(entry.text) is not None

    def add(self, entry: Entry, tally: Tally) -> None:
        """Take one of the two lines; count with the second."""
        if match := _LENGTH.search(entry.text):
            before, self._length = self._length, (entry.number, match[1])
            if before is not None:
                raise Malformed(f"no total_token after line {before[0]}")
            return
        match = _TOKENS.search(entry.text)
        if match is None:
            return
        length, self._length = self._length, None
        if length is None:
            raise Malformed("no accept_length before total_token")
        at, printed = length
        tokens = digits(match[1], "total_token")
        last = round(tokens / float(printed)) if float(printed) else 0
        # A single token is one cycle's; of more, the divisor 1 may stand for one cycle or for two.
        cycles = min(last + 1, tokens) if last == 1 else last + 1
        places = len(printed.partition(".")[2])
        if not last or cycles > tokens or f"{tokens / last:.{places}f}" != printed:
            raise Malformed(f"{tokens} tokens do not give an accepted length of {printed}")
        if cycles == 2:
            tally.warn("one cycle or two, which the log does not tell: taken as two", at)
        tally.totals(f"line {at}", cycles, tokens - cycles)

    def finish(self, tally: Tally) -> None:
        """Name a length whose tokens never came."""
        if self._length is not None:
            tally.bad(self._length[0], "no total_token after it")
