"""speculators' ``acceptance.csv``: one row a subset."""

from __future__ import annotations

import csv
import re

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import count, number

_CYCLES, _DRAFTED, _ACCEPTED = "num_drafts", "num_draft_tokens", "num_accepted_tokens"
_POSITION = re.compile(r"acceptance_at_pos_(\d{1,3})")
_HALF = 5e-5  # written in full, but tables are copied with four digits
_NAMES = ("subset", "strategy")


class Speculators(Importer):
    """Subsets, each a group. The length includes the bonus token; rates by position are survival rates.

    An empty cell is a position that the run did not draft.
    """

    name = "speculators"
    clusters = "subsets"

    def __init__(self) -> None:
        self._columns: list[str] | None = None

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the line is the table's heading."""
        columns = _cells(entry)
        return _CYCLES in columns and ("acceptance_length" in columns or any(map(_POSITION.fullmatch, columns)))

    def add(self, entry: Entry, tally: Tally) -> None:
        """Take the heading, then count a row at a time."""
        if self.recognizes(entry):
            self._columns = _cells(entry)
            return
        cells = _cells(entry)
        if self._columns is None or len(cells) != len(self._columns):
            raise Malformed("no row of the table")
        row = dict(zip(self._columns, cells, strict=True))
        cycles = count(_float(row, _CYCLES), _CYCLES)
        if not cycles:
            tally.nothing_drafted(entry.number)
            return
        accepted = count(_float(row, _ACCEPTED), _ACCEPTED)
        if row.get(_DRAFTED, "").strip() and accepted > (drafted := count(_float(row, _DRAFTED), _DRAFTED)):
            raise Malformed(f"{accepted} of {drafted} drafted tokens accepted")
        found = sorted((int(match[1]), key) for key in row if (match := _POSITION.fullmatch(key)) and row[key].strip())
        if [position for position, _ in found] != list(range(len(found))):
            raise Malformed("positions are missing between others")
        if found and accepted > cycles * len(found):
            raise Malformed(f"{accepted} tokens accepted in {cycles} drafts of {len(found)} positions")
        rates = [_float(row, key) for _, key in found]
        name = ", ".join(row[key] for key in _NAMES if row.get(key)) or f"row {entry.number}"
        if tally.rounded(name, cycles, accepted, rates, _HALF) is None and rates:
            tally.warn("rates by position contradict the counts: positions left out", entry.number)


def _cells(entry: Entry) -> list[str]:
    if entry.value is not None:
        return []
    try:
        return [cell.strip() for cell in next(csv.reader([entry.text]), [])]
    except csv.Error:
        return []


def _float(row: dict[str, str], key: str) -> float:
    try:
        return number(float(row[key]), key)
    except (KeyError, ValueError):
        raise Malformed(f"{key} is no number") from None
