"""What importers count into: groups and cycles, in bounded memory, and what was wrong on the way."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from gumiho_simulator.importers.reading.cycles import CycleRows
from gumiho_simulator.importers.reading.result import Reading
from gumiho_simulator.importers.reading.rounded import survivors
from gumiho_theory import AcceptanceCounts, InputError, Trace
from gumiho_theory.rates import MAX_DEPTH

MAX_GROUPS = 20_000
_NAMED = 3  # places that a warning names
_LONGEST_NAME = 200
_MERGED = f"more than {MAX_GROUPS} groups: neighbours are merged, so tau by group is not that of a request"


class Malformed(Exception):  # noqa: N818 (a line, not a failure)
    """An entry of the format that cannot be used; its text says why."""


class _Group:
    """Sums of one cluster. Where drafts of unknown depth were logged, `open` holds [cycles, survivors...]."""

    __slots__ = ("accepted", "at_risk", "cycles", "last", "open", "total")

    def __init__(self, name: str) -> None:
        self.last = name
        self.cycles = self.total = 0
        self.at_risk: list[int] = []
        self.accepted: list[int] = []
        self.open: list[int] = []

    def add(self, other: _Group) -> None:
        self.last = other.last
        self.cycles += other.cycles
        self.total += other.total
        for name in ("at_risk", "accepted", "open"):
            setattr(self, name, _sum(getattr(self, name), getattr(other, name)))

    def positions(self, depth: int) -> tuple[list[int], list[int]]:
        """Return at_risk and accepted by position; open drafts count as `depth` deep."""
        risk = (self.open + [0] * depth)[:depth]
        return _sum(self.at_risk, risk), _sum(self.accepted, self.open[1:])


class Tally:
    """Counts by group, the cycles themselves while they are few enough, and warnings.

    Errors name the file, `place`; entries are numbered by `unit`, line or object; `clusters` is what a group of the
    format is, in the plural. Drafts whose depth the log does not tell are at least `deepest` deep, as other files of
    the same log say.
    """

    def __init__(self, place: str, unit: str, deepest: int = 0, clusters: str = "groups") -> None:
        self.place, self.unit, self._deepest, self._clusters = place, unit, deepest, clusters
        self._groups: dict[str, _Group] = {}
        self._cycles: CycleRows | None = CycleRows()
        self._bare = self._positional = 0
        self._notes: dict[str, tuple[array[int], list[int]]] = {}
        self._bad: list[str] = []
        self._bad_count = 0
        self._unknown: str | None = None
        self._no_draft = False

    def totals(self, name: str, cycles: int, accepted: int) -> None:
        """Add cycles of a log without positions: their number, and their accepted tokens (no bonus).

        `Malformed` where these are more than any draft has.
        """
        if accepted > cycles * MAX_DEPTH:
            raise Malformed(f"{accepted} tokens accepted in {cycles} cycles")
        self._bare += 1
        self._cycles = None
        group = self._group(name)
        group.cycles += cycles
        group.total += accepted

    def survivors(self, name: str, cycles: int, accepted: Sequence[int], deeper: bool = False) -> None:
        """Add cycles and how many of them accepted position i = 1..D: at least i tokens; not rising.

        Who accepted position i - 1 counts as having drafted i. A log that ends at the longest accepted draft may have
        had deeper ones (`deeper`), then taken to be as deep as the longest accepted draft of the whole file.
        """
        self._cycles = None
        self._survivors(name, cycles, accepted, deeper)

    def rounded(
        self, name: str, cycles: int, accepted: int, rates: Sequence[float], half: float, deeper: bool = False
    ) -> list[int] | None:
        """Add cycles by survival rates rounded to within `half`; without positions where they contradict `accepted`.

        Rates are [] where they are not printed; `deeper` as in `survivors`. Returned is how many cycles accepted each
        position, None where there are no positions.
        """
        found = survivors(rates, half, cycles, accepted) if rates else None
        if found is None:
            self.totals(name, cycles, accepted)
        else:
            self.survivors(name, cycles, found, deeper)
        return found

    def histogram(self, name: str, cycles: Sequence[int], depth: int | None) -> None:
        """Add cycles by accepted length L = 0, 1, ...; `depth` of their drafts, None where it is unknown."""
        self._cycles = None
        self._histogram(name, cycles, depth)

    def turn(self, name: str, task: str | None, accepted: Sequence[int], drafted: Sequence[int] | None) -> None:
        """Add the cycles of a prompt's next turn: accepted lengths (no bonus), in order, and draft depths if logged."""
        by_depth: dict[int | None, list[int]] = {}
        for length, depth in zip(accepted, [None] * len(accepted) if drafted is None else drafted, strict=True):
            buckets = by_depth.setdefault(depth, [])
            buckets.extend([0] * (length + 1 - len(buckets)))
            buckets[length] += 1
        for depth, buckets in by_depth.items():
            self._histogram(name, buckets, depth)
        kept = self._cycles is None or self._cycles.add(_short(name), task and _short(task), accepted, drafted)
        if not kept:
            self._cycles = None
            self.warn("more cycles than are kept one by one: summed up by group")

    def warn(self, text: str, number: int | None = None) -> None:
        """Note a sentence once, with the first entries that it concerns and how many they are."""
        times, places = self._notes.setdefault(text, (array("q", [0]), []))
        if number is not None:
            times[0] += 1
            if len(places) < _NAMED:
                places.append(number)

    def bad(self, number: int, reason: str) -> None:
        """Note an entry that could not be used."""
        self._bad_count += 1
        if len(self._bad) < _NAMED:
            self._bad.append(f"{self.unit} {number}: {reason}")

    def nothing_drafted(self, number: int) -> None:
        """Note an entry that reports no draft: no data, which is not an acceptance of 0."""
        self._no_draft = True
        self.warn("no draft was verified there: no data", number)

    def cycles_unknown(self, number: int, text: str) -> None:
        """Note an entry that gives means or rates, `text`, but not of how many cycles."""
        if self._unknown is None:
            self._unknown = text
        self.warn("means or rates without a number of cycles: left out", number)

    def finish(self, name: str) -> Reading:
        """Return what was counted; InputError where nothing was."""
        if not self._groups and not self._no_draft:
            if self._unknown is not None:
                wanted = "a log that tells how many cycles there were; for rates alone: gumiho predict --rates"
                raise InputError(self.place, f"{self._unknown}, but not of how many cycles", wanted)
            found = self._bad[0] if self._bad else "no entry that counts cycles"
            raise InputError(self.place, found, f"usable entries of format {name}")
        if self._cycles is not None and self._groups:
            rows = self._cycles
            if rows.depth_unknown:
                rows.deepest = self._deepest = max(rows.deepest, self._deepest)
                self.warn(
                    f"draft depths are not logged: taken as {rows.deepest}, the longest accepted draft; "
                    "nodes as a chain's"
                )
            self._notes.pop(_MERGED, None)  # the cycles carry their own prompts
            log: Trace | AcceptanceCounts = rows.trace(name)
            unknown = rows.depth_unknown
        else:
            log = self._counts()
            unknown = any(group.open for group in self._groups.values())
        return Reading(name, log, tuple(self._sentences()), self._deepest if unknown else None)

    def _counts(self) -> AcceptanceCounts:
        groups = list(self._groups.values())
        names = [
            key if key == group.last else f"{key} … {group.last}"
            for key, group in zip(self._groups, groups, strict=True)
        ]
        risk = accepted = None
        if self._positional and self._bare:
            self.warn("some groups have counts by position and others none: positions left out")
        elif self._positional:
            if any(group.open for group in groups):
                self._deepest = max(self._deepest, *(len(group.open) - 1 for group in groups))
                pairs = [group.positions(self._deepest) for group in groups]
            else:
                pairs = [(group.at_risk, group.accepted) for group in groups]
            width = max((len(pair[0]) for pair in pairs), default=0)
            risk, accepted = (
                np.array([[*pair[i], *[0] * (width - len(pair[i]))] for pair in pairs], dtype=np.int64)
                for i in range(2)
            )
        cycles = np.array([group.cycles for group in groups], dtype=np.int64)
        total = np.array([group.total for group in groups], dtype=np.int64)
        return AcceptanceCounts(tuple(names), cycles, total, cycles, risk, accepted, self._clusters)

    def _survivors(self, name: str, cycles: int, accepted: Sequence[int], deeper: bool) -> None:
        self._positional += 1
        group = self._group(name)
        group.cycles += cycles
        group.total += sum(accepted)
        if deeper:
            group.open = _sum(group.open, [cycles, *accepted])
        else:
            group.at_risk = _sum(group.at_risk, [cycles, *accepted][: len(accepted)])
            group.accepted = _sum(group.accepted, accepted)

    def _histogram(self, name: str, cycles: Sequence[int], depth: int | None) -> None:
        longest = max((length for length, number in enumerate(cycles) if number), default=0)
        padded = [*cycles, *[0] * (max(depth or 0, longest) + 1 - len(cycles))]
        survivors = np.cumsum(padded[::-1], dtype=np.int64)[::-1].tolist()
        self._survivors(name, survivors[0], survivors[1 : max(depth or 0, longest) + 1], depth is None)

    def _group(self, name: str) -> _Group:
        name = _short(name)
        if name not in self._groups:
            if len(self._groups) >= MAX_GROUPS:
                self._halve()
            self._groups[name] = _Group(name)
        return self._groups[name]

    def _halve(self) -> None:
        """Merge neighbours: clusters of adjoining groups stay clusters, and memory stays bounded."""
        self.warn(_MERGED)
        names = list(self._groups)
        for first, second in zip(names[::2], names[1::2], strict=False):
            self._groups[first].add(self._groups.pop(second))

    def _sentences(self) -> list[str]:
        made = []
        for text, (times, places) in self._notes.items():
            listed = ", ".join(map(str, places)) + (f" and {times[0] - len(places)} more" if times[0] > _NAMED else "")
            made.append(f"{text} ({self.unit} {listed})" if places else text)
        if self._bad:
            more = f"; and {self._bad_count - _NAMED} more" if self._bad_count > _NAMED else ""
            made.append(f"{self._bad_count} unusable: {'; '.join(self._bad)}{more}")
        return made


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _sum(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip_longest(one, other, fillvalue=0)]
