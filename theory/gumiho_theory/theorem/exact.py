"""Exact rational arithmetic: numbers as typed, the closed form of E[L], and the change the theorem is about."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.rates import MAX_DEPTH

# Text is short and without an exponent: "1e999999999" would be a number of a gigabyte.
_TEXT = re.compile(r"(-?(?:[0-9]{1,40}|[0-9]{0,40}\.[0-9]{1,40}|[0-9]{1,40}\.))(?:/([0-9]{1,40}))?")
# The least that a sum of float64 rates may lack; coarser floats may lack their own rounding, D times.
RESIDUAL_TOLERANCE = Fraction(1, 10**9)


def to_exact(values: Any, place: str) -> tuple[Fraction, ...]:
    """Return numbers as exact rationals.

    `values`: Comma-separated text, or numbers: int, Fraction, text such as "3/4" or "0.81" (an exact decimal), float,
    numpy. A float is taken as the binary number that it is. `place`: What an error names. Raises InputError: For what
    is no finite number, naming its position from 1, or for more than 512 numbers.
    """
    parts: Any = values.split(",") if isinstance(values, str) else values
    if not isinstance(parts, Iterable) or isinstance(parts, bytes):
        raise InputError(place, repr(values), "a list of numbers")
    try:
        listed = list(parts)
    except TypeError:  # a numpy array of no dimension
        raise InputError(place, repr(values), "a list of numbers") from None
    if len(listed) > MAX_DEPTH:
        raise InputError(place, f"{len(listed)} numbers", f"at most {MAX_DEPTH}")
    return tuple(_one(value, f"{place}, position {position}") for position, value in enumerate(listed, start=1))


def _one(value: Any, place: str) -> Fraction:
    if isinstance(value, str):
        match = _TEXT.fullmatch(value.strip())
        if match is None:
            raise InputError(place, repr(value.strip()), "a decimal or a fraction, such as 0.8 or 4/5")
        if match[2] and int(match[2]) == 0:
            raise InputError(place, repr(value.strip()), "a fraction with a denominator above 0")
        return Fraction(match[1]) / int(match[2] or 1)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, numbers.Real) and hasattr(value, "as_integer_ratio"):
        try:
            return Fraction(*map(int, value.as_integer_ratio()))
        except (ValueError, OverflowError):
            raise InputError(place, value, "a finite number") from None
    raise InputError(place, repr(value), "an int, a Fraction, a float, or text such as 0.8 or 4/5")


def to_rates(values: Any, place: str) -> tuple[Fraction, ...]:
    """Return rates as exact rationals in [0, 1]; see `to_exact`.

    Raises InputError: For no rate at all, or one that is no number in [0, 1]; names its position from 1.
    """
    rates = to_exact(values, place)
    if not rates:
        raise InputError(place, "no rates", "at least one")
    for position, rate in enumerate(rates, start=1):
        if not 0 <= rate <= 1:
            raise InputError(f"{place}, position {position}", short(rate, Fraction(rate > 1)), "a rate in [0, 1]")
    return rates


def float_rounding(values: Any) -> float:
    """Return the spacing at 1 of the coarsest float among the values of a list; 0 when all are exact."""
    if isinstance(values, str):
        return 0.0
    inexact = [type(value) for value in values if isinstance(value, float | np.floating)]
    return max((float(np.finfo(kind).eps) for kind in inexact), default=0.0)


def product(rates: Sequence[Fraction]) -> Fraction:
    """Return the product of the rates; 1 for none."""
    return Fraction(math.prod(rate.numerator for rate in rates), math.prod(rate.denominator for rate in rates))


def dot(left: Iterable[Fraction], right: Iterable[Fraction]) -> Fraction:
    """Return the sum of the products of two rows of equal length."""
    return sum((x * y for x, y in zip(left, right, strict=True)), Fraction())


def expected_exact(rates: Sequence[Fraction]) -> Fraction:
    """Return E[L] = sum_i p_1 ... p_i of conditional rates [D] exactly, 0 for none; no bonus token."""
    # p_1 (1 + p_2 (1 + ...)) over one denominator: a single reduction at the end, where D of them would take long.
    above, below = 0, 1
    for rate in reversed(rates):
        above, below = rate.numerator * (below + above), rate.denominator * below
    return Fraction(above, below)


def fraction_text(value: Fraction) -> str:
    """Return ``3/4``, or ``2`` for a whole number, however many digits it has."""
    # Python refuses to write integers of more than 4300 digits; Decimal writes them all.
    above, below = (format(Decimal(part), "f") for part in (value.numerator, value.denominator))
    return above if below == "1" else f"{above}/{below}"


def short(value: Fraction, beside: Fraction | None = None) -> str:
    """Return a number for a message: short ones as they are, others rounded, but never to the same as `beside`."""
    for digits in (6, 12, 17):
        text = _rounded(value, digits)
        if beside is None or beside == value or text != _rounded(beside, digits):
            return text
    return fraction_text(value)


def _rounded(value: Fraction, digits: int) -> str:
    if value.denominator > 10**6 or 10**9 % value.denominator == 0:
        return f"{float(value):.{digits}g}"
    return str(value)


@dataclass(frozen=True)
class Change:
    """An admissible change of rates: the first `early` raised or kept, the later ones lowered or kept.

    Attributes
    ----------
    original, improved : tuple of Fraction [D]
        Conditional rates before and after.
    early : int
        d, the number of early positions, 1..D-1.
    residual : Fraction
        Sum of the improved rates less that of the original ones: 0, unless float rounding keeps it from being so.
    """

    original: tuple[Fraction, ...]
    improved: tuple[Fraction, ...]
    early: int
    residual: Fraction

    @classmethod
    def read(cls, original: Any, improved: Any, early: Any) -> Change:
        """Check a pair of rate lists and the number of early positions.

        `original`, `improved` (str or iterable [D]): Conditional rates in any form that `to_exact` reads. `early`: d,
        1..D-1. Raises InputError: For unequal lengths, a rate outside [0, 1], an early rate lowered, a later one
        raised, `early` outside 1..D-1, or sums that differ: at all when both lists are exact, by more than 1e-9 (for
        floats coarser than float64: by more than D times their spacing at 1) when a float is among them.
        """
        # Read once: the lists may be iterators.
        original, improved = (_listed(values) for values in (original, improved))
        before, after = to_rates(original, "original"), to_rates(improved, "improved")
        depth = len(before)
        if len(after) != depth:
            raise InputError("improved", f"a length of {len(after)}", f"{depth}, the length of original")
        early = check_early(early, depth)
        for position, (old, new) in enumerate(zip(before, after, strict=True), start=1):
            if position <= early and new < old:
                wanted = f"at least {short(old, new)}: it is early"
                raise InputError(f"improved, position {position}", short(new, old), wanted)
            if position > early and new > old:
                wanted = f"at most {short(old, new)}: it is late"
                raise InputError(f"improved, position {position}", short(new, old), wanted)
        sums = sum(before, Fraction()), sum(after, Fraction())
        residual = sums[1] - sums[0]
        rounding = max(float_rounding(original), float_rounding(improved))
        tolerance = max(RESIDUAL_TOLERANCE, depth * Fraction(rounding)) if rounding else Fraction()
        if abs(residual) > tolerance:
            near = f" within {float(tolerance):.1g}" if rounding else ""
            wanted = f"{short(*sums)}, the sum of original{near}"
            raise InputError("improved", f"a sum of {short(*sums[::-1])}", wanted)
        return cls(before, after, early, residual)


def check_early(early: Any, depth: int) -> int:
    """Return the number of early positions, once it is one: a whole number from 1 to D - 1.

    Raises InputError: When it is not, or D is below 2.
    """
    if depth < 2:
        raise InputError("original", f"{depth} rate", "at least 2: an early one and a later one")
    whole = isinstance(early, numbers.Integral) and not isinstance(early, bool)
    if not whole or not 1 <= early < depth:
        raise InputError("early", repr(early), f"a whole number from 1 to {depth - 1}")
    return int(early)


def _listed(values: Any) -> Any:
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes | np.ndarray) else values
