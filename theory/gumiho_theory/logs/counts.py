"""AcceptanceCounts: what is left of a log once it is summed, group by group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.files import JsonFile, Schema
from gumiho_theory.rates import MAX_DEPTH
from gumiho_theory.types import BoolArray, FloatArray, IntArray

SCHEMA = "gumiho.acceptance_counts"
_LONGEST_WORD = 40
_KEYS = ("groups", "cycles", "total_accepted", "complete_cycles", "at_risk", "accepted")


def _integers(value: Any, name: str, ndim: int) -> IntArray:
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        raise InputError(name, "a ragged list or a number too large", f"{ndim}-dimensional integers") from None
    # An empty list has no type of its own.
    if array.ndim != ndim or (array.size and array.dtype.kind not in "iu"):
        raise InputError(name, f"{array.ndim}-dimensional {array.dtype}", f"{ndim}-dimensional integers")
    copy = np.array(array, dtype=np.int64)
    copy.setflags(write=False)
    return copy


@dataclass(frozen=True, eq=False)
class AcceptanceCounts(JsonFile):
    """Counts by group; groups are the clusters (prompts, engines, intervals) and stay apart.

    Parameters
    ----------
    groups : tuple of str
        Names of the G groups, distinct.
    cycles : int array [G]
        Cycles of each group.
    total_accepted : int array [G]
        Sum of the accepted length L (no bonus) over the complete cycles.
    complete_cycles : int array [G]
        Cycles whose accepted length is known in full (not censored).
    at_risk : int array [G, D] or None
        Cycles in which position i = 1..D was drafted and everything before it was accepted; None where the
        log has no positions.
    accepted : int array [G, D] or None
        Those of them in which position i was accepted as well.
    clusters : str
        What a group is, in the plural: prompts, intervals, engines, requests, ... "groups" where nobody said.

    Raises
    ------
    InputError
        When shapes differ or the counts contradict one another.

    Notes
    -----
    Rates of groups that drafted to different depths are pooled as a product of conditional rates
    (Kaplan-Meier), never by dividing by all cycles.
    """

    schema = Schema(SCHEMA, 1)
    groups: tuple[str, ...]
    cycles: IntArray
    total_accepted: IntArray
    complete_cycles: IntArray
    at_risk: IntArray | None = None
    accepted: IntArray | None = None
    clusters: str = "groups"

    def __post_init__(self) -> None:
        if not isinstance(self.clusters, str) or not 1 <= len(self.clusters) <= _LONGEST_WORD:
            raise InputError("clusters", repr(self.clusters)[:80], "what the groups are, such as 'prompts'")
        object.__setattr__(self, "groups", tuple(self.groups))
        if not all(isinstance(group, str) for group in self.groups) or len(set(self.groups)) != len(self.groups):
            raise InputError("groups", "names that are repeated or not text", "distinct names")
        if (self.at_risk is None) != (self.accepted is None):
            raise InputError("at_risk and accepted", "one of them", "both or neither")
        for name in _KEYS[1:]:
            value = getattr(self, name)
            if value is None:
                continue
            array = _integers(value, name, 2 if name in ("at_risk", "accepted") else 1)
            if len(array) != len(self.groups):
                raise InputError(name, f"{len(array)} rows", f"one row for each of {len(self.groups)} groups")
            if (array < 0).any():
                raise InputError(name, int(array.min()), "counts of at least 0")
            object.__setattr__(self, name, array)
        self._check("complete_cycles", self.complete_cycles > self.cycles, "at most the group's cycles")
        self._check(
            "total_accepted",
            (self.complete_cycles == 0) & (self.total_accepted > 0),
            "0 without a complete cycle",
        )
        if self.at_risk is None or self.accepted is None:
            return
        if self.at_risk.shape != self.accepted.shape or self.at_risk.shape[1] > MAX_DEPTH:
            raise InputError(
                "at_risk and accepted",
                f"shapes {self.at_risk.shape} and {self.accepted.shape}",
                f"equal shapes, at most {MAX_DEPTH} deep",
            )
        # Who reaches position i is among those accepted at i - 1 (at position 1: among all cycles).
        before = np.concatenate([self.cycles[:, None], self.accepted], axis=1)[:, :-1]
        self._check("at_risk", self.at_risk > before, "at most the accepted of the position before")
        self._check("accepted", self.accepted > self.at_risk, "at most the cycles at risk")
        self._check(
            "total_accepted",
            self.total_accepted > self.accepted.sum(axis=1),
            "at most the sum of accepted positions",
        )

    def _check(self, name: str, bad: BoolArray, wanted: str) -> None:
        if bad.any():
            group = int(np.argwhere(bad)[0, 0])
            raise InputError(f"group {self.groups[group]!r}, {name}", getattr(self, name)[group].tolist(), wanted)

    @property
    def has_positions(self) -> bool:
        """Whether counts by draft position are known."""
        return self.at_risk is not None

    @property
    def depth(self) -> int:
        """Number of draft positions D with counts; 0 where none are known."""
        return 0 if self.at_risk is None else int(self.at_risk.shape[1])

    def conditional(self) -> FloatArray:
        """Pooled conditional rates, sum of accepted over sum of at_risk.

        Returns
        -------
        float array [D]
            P(position i accepted, given 1..i-1 accepted); nan where no cycle was at risk.

        Raises
        ------
        InputError
            When the log has no positions.
        """
        if self.at_risk is None or self.accepted is None:
            raise InputError("acceptance counts", "no counts by position", "at_risk and accepted by position")
        risk = self.at_risk.sum(axis=0).astype(np.float64)
        hits = self.accepted.sum(axis=0).astype(np.float64)
        rates: FloatArray = np.full(risk.shape, np.nan)
        np.divide(hits, risk, out=rates, where=risk > 0)
        return rates

    def survival(self) -> FloatArray:
        """Pooled survival rates P(L >= i), the Kaplan-Meier product of the conditional rates.

        Returns
        -------
        float array [D]
            nan from the first position without a cycle at risk.

        Raises
        ------
        InputError
            When the log has no positions.
        """
        product: FloatArray = np.cumprod(self.conditional(), dtype=np.float64)
        return product

    def tau(self) -> float | None:
        """Mean acceptance length over the complete cycles: bonus included, micro (pooled over groups).

        Returns
        -------
        float or None
            1 + mean L; None when no cycle is complete.
        """
        complete = int(self.complete_cycles.sum())
        return None if complete == 0 else 1.0 + int(self.total_accepted.sum()) / complete

    def select(self, groups: Iterable[str]) -> AcceptanceCounts:
        """Return the counts of some groups, in the order asked for.

        Raises
        ------
        InputError
            When a group does not exist or is asked for twice.
        """
        place = {group: index for index, group in enumerate(self.groups)}
        names = tuple(groups)
        for name in names:
            if name not in place:
                raise InputError("groups", repr(name), f"one of the {len(self.groups)} groups")
        index = np.array([place[name] for name in names], dtype=np.int64)
        return AcceptanceCounts(
            names,
            self.cycles[index],
            self.total_accepted[index],
            self.complete_cycles[index],
            None if self.at_risk is None else self.at_risk[index],
            None if self.accepted is None else self.accepted[index],
            self.clusters,
        )

    def _to_values(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in _KEYS[1:]}
        lists = {name: None if array is None else array.tolist() for name, array in arrays.items()}
        return {"clusters": self.clusters, "groups": list(self.groups), **lists}

    @classmethod
    def _from_values(cls, data: Mapping[str, Any]) -> AcceptanceCounts:
        for name in _KEYS[:4]:
            if not isinstance(data.get(name), list):
                raise InputError(f"acceptance counts, {name}", repr(data.get(name)), "a list")
        values: dict[str, Any] = {name: data.get(name) for name in _KEYS}
        for name in _KEYS[4:]:
            # A list without groups has lost its second axis.
            if values[name] == [] and values["groups"] == []:
                values[name] = np.zeros((0, 0), dtype=np.int64)
        return cls(**values, clusters=data.get("clusters", "groups"))
