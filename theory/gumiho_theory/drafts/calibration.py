"""ScoreCalibration: what a drafter's probabilities are worth as probabilities of acceptance, by depth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gumiho_theory.errors import InputError, check_integer, within
from gumiho_theory.files import JsonFile, Schema
from gumiho_theory.rates import MAX_DEPTH
from gumiho_theory.types import FloatArray

MAX_BETA = 100.0
MAX_KNOTS = 10_000


def _within(value: object, high: float) -> bool:
    """Whether `value` is a number in [0, high]; compared, so that nan is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= high


@dataclass(frozen=True)
class TemperatureMap:
    """Acceptance probabilities softmax(beta * log q) over the vocabulary; beta above 1 sharpens.

    Parameters
    ----------
    beta : float
        Inverse temperature, 0 < beta <= 100.

    Raises
    ------
    InputError
        For any other beta.
    """

    beta: float
    kind: ClassVar[str] = "temperature"

    def __post_init__(self) -> None:
        if not _within(self.beta, MAX_BETA) or self.beta == 0:
            raise InputError("beta", repr(self.beta), f"a number above 0, at most {MAX_BETA:g}")
        object.__setattr__(self, "beta", float(self.beta))

    def __call__(self, log_q: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability of every token.

        `log_q` (array_like [..., V]): The drafter's log-probabilities of the whole vocabulary, -inf where it gives
        none. A constant added to a row changes nothing. Returns float array [..., V]: Each row sums to 1. Raises
        InputError: For nan or infinity, a row that is -inf throughout, or no vocabulary.
        """
        rows = np.asarray(log_q, dtype=np.float64)
        if rows.ndim == 0 or rows.shape[-1] == 0:
            raise InputError("log q", f"shape {rows.shape}", "log-probabilities of a vocabulary, [..., V]")
        best = rows.max(axis=-1, keepdims=True)
        if not np.isfinite(best).all():
            raise InputError("log q", best[~np.isfinite(best)][0], "rows of log-probabilities, some above -inf")
        # Rows of enormous spread overflow to -inf, which is what they mean.
        with np.errstate(over="ignore"):
            weights = np.exp(self.beta * (rows - best))
        probabilities: FloatArray = weights / weights.sum(axis=-1, keepdims=True)
        return probabilities

    def to_json(self) -> dict[str, Any]:
        """Return the map as JSON values, with its ``kind``."""
        return {"kind": self.kind, "beta": self.beta}


@dataclass(frozen=True)
class IsotonicMap:
    """Acceptance probability as a non-decreasing function of the drafter's: linear between knots, constant outside.

    Parameters
    ----------
    draft : tuple of float [n]
        The knots, 2 to 10,000 draft probabilities, strictly ascending within [0, 1].
    acceptance : tuple of float [n]
        Acceptance probability at each of them, non-decreasing within [0, 1].

    Raises
    ------
    InputError
        Names the field and the knot, counted from 1.
    """

    draft: tuple[float, ...]
    acceptance: tuple[float, ...]
    kind: ClassVar[str] = "isotonic"

    def __post_init__(self) -> None:
        for name in ("draft", "acceptance"):
            values = getattr(self, name)
            if not isinstance(values, list | tuple) or not 2 <= len(values) <= MAX_KNOTS:
                found = f"{len(values)} values" if isinstance(values, list | tuple) else repr(values)
                raise InputError(name, found, f"a list of 2 to {MAX_KNOTS} probabilities")
            for knot, value in enumerate(values, start=1):
                if not _within(value, 1.0):
                    raise InputError(f"{name}, knot {knot}", repr(value), "a probability in [0, 1]")
            object.__setattr__(self, name, tuple(float(value) for value in values))
        if len(self.draft) != len(self.acceptance):
            raise InputError("acceptance", f"{len(self.acceptance)} values", f"{len(self.draft)}, one a knot of draft")
        for knot in range(1, len(self.draft)):
            before, value = self.draft[knot - 1 : knot + 1]
            if value <= before:
                raise InputError(f"draft, knot {knot + 1}", value, f"more than {before}, the knot before")
            before, value = self.acceptance[knot - 1 : knot + 1]
            if value < before:
                raise InputError(f"acceptance, knot {knot + 1}", value, f"at least {before}, the knot before")

    @cached_property
    def _knots(self) -> tuple[FloatArray, FloatArray]:
        """Knots with one more on either side of [0, 1], so that each probability lies between two of them."""
        draft = np.array([-1.0, *self.draft, 2.0])
        return draft, np.array([self.acceptance[0], *self.acceptance, self.acceptance[-1]])

    def __call__(self, q_draft: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability of tokens of draft probability `q_draft`.

        `q_draft` (array_like [...]): Probabilities in [0, 1]. Returns float array [...]: Never falls where `q_draft`
        rises, and equals `acceptance` at the knots. Raises InputError: For a value outside [0, 1], nan included.
        """
        q = np.asarray(q_draft, dtype=np.float64)
        bad = ~((q >= 0) & (q <= 1))
        if bad.any():
            raise InputError("q_draft", q[bad][0], "a probability in [0, 1]")
        draft, acceptance = self._knots
        left = np.searchsorted(draft, q, side="right") - 1
        low, high = acceptance[left], acceptance[left + 1]
        # np.interp divides by the gap first, and overflows between knots that nearly touch.
        weight = (q - draft[left]) / (draft[left + 1] - draft[left])
        return np.asarray(np.minimum(low + weight * (high - low), high), dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        """Return the map as JSON values, with its ``kind``."""
        return {"kind": self.kind, "draft": list(self.draft), "acceptance": list(self.acceptance)}


ScoreMap = TemperatureMap | IsotonicMap


@dataclass(frozen=True)
class ScoreCalibration(JsonFile):
    """Maps from draft probability to acceptance probability of one drafter, fitted to what its target accepted.

    Parameters
    ----------
    drafter : str
        Name of the drafter.
    fingerprint : str
        SHA-256 of its weights, 64 lower-case hexadecimal digits.
    maps : tuple of TemperatureMap or IsotonicMap
        One for each depth (draft position) 1, 2, ...; deeper positions take the last.
    provenance : dict
        JSON values: what the maps were fitted to.

    Raises
    ------
    InputError
        Names the field.
    """

    schema = Schema("gumiho.calibration", 1)
    drafter: str
    fingerprint: str
    maps: tuple[ScoreMap, ...]
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.drafter, str):
            raise InputError("drafter, name", repr(self.drafter), "text")
        if not isinstance(self.fingerprint, str) or re.fullmatch("[0-9a-f]{64}", self.fingerprint) is None:
            wanted = "a SHA-256, 64 lower-case hexadecimal digits"
            raise InputError("drafter, fingerprint", repr(self.fingerprint), wanted)
        if not isinstance(self.maps, list | tuple) or not 1 <= len(self.maps) <= MAX_DEPTH:
            found = f"{len(self.maps)} maps" if isinstance(self.maps, list | tuple) else repr(self.maps)
            raise InputError("maps", found, f"a list of 1 to {MAX_DEPTH} maps")
        for depth, one in enumerate(self.maps, start=1):
            if not isinstance(one, TemperatureMap | IsotonicMap):
                raise InputError(f"maps, depth {depth}", repr(one), "a TemperatureMap or an IsotonicMap")
        object.__setattr__(self, "maps", tuple(self.maps))
        if not isinstance(self.provenance, Mapping) or not all(isinstance(key, str) for key in self.provenance):
            raise InputError("provenance", type(self.provenance).__name__, "a mapping with text keys")
        object.__setattr__(self, "provenance", dict(self.provenance))

    def at(self, depth: int) -> ScoreMap:
        """Return the map of a draft position, counted from 1.

        Raises
        ------
        InputError
            For a depth below 1.
        """
        check_integer("depth", depth, 1)
        return self.maps[min(depth, len(self.maps)) - 1]

    def check_drafter(self, fingerprint: str) -> None:
        """Refuse to serve another drafter than the one whose weights the maps were fitted to.

        Parameters
        ----------
        fingerprint : str
            SHA-256 of the weights of the drafter in use.

        Raises
        ------
        InputError
            When it is another's.
        """
        if fingerprint != self.fingerprint:
            found = f"weights {self.fingerprint[:12]}… ({self.drafter})"
            raise InputError("calibration, drafter", found, f"weights {fingerprint[:12]}…, as the drafter in use has")

    def _to_values(self) -> dict[str, Any]:
        return {
            "drafter": {"name": self.drafter, "fingerprint": self.fingerprint},
            "maps": [{"depth": depth, **one.to_json()} for depth, one in enumerate(self.maps, start=1)],
            "provenance": self.provenance,
        }

    @classmethod
    def _from_values(cls, data: Mapping[str, Any]) -> ScoreCalibration:
        drafter, maps = data.get("drafter"), data.get("maps")
        if not isinstance(drafter, Mapping):
            raise InputError("drafter", repr(drafter), "an object with name and fingerprint")
        if not isinstance(maps, list):
            raise InputError("maps", repr(maps), "a list of maps")
        read = tuple(_map(value, depth) for depth, value in enumerate(maps, start=1))
        return cls(
            drafter.get("name"),  # type: ignore[arg-type]
            drafter.get("fingerprint"),  # type: ignore[arg-type]
            read,
            data.get("provenance", {}),
        )


def _map(data: object, depth: int) -> ScoreMap:
    place = f"maps, depth {depth}"
    if not isinstance(data, Mapping):
        raise InputError(place, repr(data), "an object with depth, kind and the map's values")
    if data.get("depth") != depth or isinstance(data.get("depth"), bool | float):
        raise InputError(f"{place}, depth", repr(data.get("depth")), f"{depth}: depths are 1, 2, ... in order")
    for one in (TemperatureMap, IsotonicMap):
        if data.get("kind") == one.kind:
            values: dict[str, Any] = {f.name: data.get(f.name) for f in fields(one)}
            with within(place):
                return one(**values)
    raise InputError(f"{place}, kind", repr(data.get("kind")), "temperature or isotonic")
