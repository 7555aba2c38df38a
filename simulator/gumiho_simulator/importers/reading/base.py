"""What every importer is, and how it takes numbers out of other people's records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import isfinite
from typing import Any, ClassVar

from gumiho_simulator.importers.reading.entries import Entry
from gumiho_simulator.importers.reading.tally import Malformed, Tally
from gumiho_theory.rates import MAX_DEPTH

SHORTER = (
    "some drafts were shorter than others; survival and tau stand, but the conditional rates count a position "
    "that was not drafted as refused"
)
_NESTING = 6
_LARGEST = 2**40  # of one count: sums of them stay far from what 64 bits hold
_ROUNDED = 0.0051  # of a mean printed with two digits


class Importer(ABC):
    """Reads the entries of one file in one format.

    An instance serves one file. `add` raises `Malformed` before it has counted anything of an entry, so that
    an entry, or one of several requests in it, counts in full or not at all.
    """

    name: ClassVar[str]
    clusters: ClassVar[str] = "groups"
    """What a group of this format is, in the plural."""

    @staticmethod
    @abstractmethod
    def recognizes(entry: Entry) -> bool:
        """Whether only this format has such an entry."""

    @abstractmethod
    def add(self, entry: Entry, tally: Tally) -> None:
        """Count one entry; entries that say nothing of drafting are passed over."""

    def finish(self, tally: Tally) -> None:  # noqa: B027 (most formats have nothing left)
        """Count what only the whole file tells."""


def count(value: Any, name: str) -> int:
    """Return a count, an integer of at least 0 (a float without a fraction is one)."""
    number = value
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _LARGEST:
        raise Malformed(f"{name} is {_short(value)}, not a count")
    return number


def counts(value: Any, name: str) -> list[int]:
    """Return a list of counts."""
    if not isinstance(value, list):
        raise Malformed(f"{name} is {_short(value)}, not a list of counts")
    return [count(one, name) for one in value]


def number(value: Any, name: str) -> float:
    """Return a finite number."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            return float(value)
    except OverflowError:  # an integer beyond all floats
        pass
    raise Malformed(f"{name} is {_short(value)}, not a finite number")


def digits(text: str, name: str) -> int:
    """Return a count that stands in a line of text as digits."""
    return count(int(text[:20]), name)


def mean_fits(mean: float, accepted: int, cycles: int) -> bool:
    """Whether a reported tau is that of the counts, to within rounding to two digits."""
    return abs(mean - 1 - accepted / cycles) <= _ROUNDED


def json_object(entry: Entry) -> dict[str, Any]:
    """Return the JSON object that an entry is."""
    if entry.value is None:
        raise Malformed("no JSON object")
    return entry.value


def histogram(value: Any, name: str, first: int = 0) -> list[int]:
    """Return cycles by accepted length L = 0, 1, ..., from a list or from a sparse map.

    A list's index, or an object's key, is L + `first` (1 where keys count emitted tokens, bonus included); a missing
    key is an empty bucket. Errors name `name`.
    """
    if isinstance(value, dict):
        buckets = {length_of(key, name): count(cycles, name) for key, cycles in value.items()}
    else:
        buckets = dict(enumerate(counts(value, name)))
    if any(cycles and key < first for key, cycles in buckets.items()):
        raise Malformed(f"{name} counts cycles below {first}")
    top = max((key - first for key in buckets), default=-1)
    if top > MAX_DEPTH:
        raise Malformed(f"{name} reaches {top} accepted tokens, more than {MAX_DEPTH}")
    return [buckets.get(length + first, 0) for length in range(top + 1)]


def lengths(value: Any, name: str, bonus: int) -> list[int]:
    """Return accepted lengths L, one a cycle, from values that include `bonus` tokens more."""
    found = [length - bonus for length in counts(value, name)]
    if found and not 0 <= min(found) <= max(found) <= MAX_DEPTH:
        raise Malformed(f"{name} runs from {min(found) + bonus} to {max(found) + bonus}")
    return found


def find(value: Any, *keys: str) -> Iterator[dict[str, Any]]:
    """Yield the objects inside a JSON value, itself included, that have all of the keys."""
    stack = [(value, _NESTING)]
    while stack:
        one, depth = stack.pop()
        if isinstance(one, dict) and all(key in one for key in keys):
            yield one
        elif depth and isinstance(one, dict | list):
            inner = one.values() if isinstance(one, dict) else one
            stack.extend((child, depth - 1) for child in reversed(list(inner)) if isinstance(child, dict | list))


def has(value: Any, *keys: str) -> bool:
    """Whether some object inside a JSON value has all of the keys."""
    return next(find(value, *keys), None) is not None


def length_of(key: str, name: str) -> int:
    """Return the length that a map's key stands for."""
    if not (key.isascii() and key.isdecimal()) or len(key) > 6:
        raise Malformed(f"{name} has the key {_short(key)}, not a length")
    return int(key)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."
