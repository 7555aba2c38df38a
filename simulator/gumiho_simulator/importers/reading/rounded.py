"""Counts behind printed means and rates: what rounding leaves possible, and one choice of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

_SLACK = 1e-9
_TRIED = 500  # numbers of cycles tried on either side of the likeliest


def half_unit(printed: str) -> float:
    """Return half a unit of the last digit of a printed decimal number."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def survivors(rates: Sequence[float], half: float, cycles: int, total: int) -> list[int] | None:
    """Return the counts by position that survival rates rounded to within `half` stand for; None where there are none.

    They do not rise, each is within rounding of its rate, and they sum to `total`; of several the first that
    nearest-integer counts lead to.
    """
    if any(rate > 1 for rate in rates):
        return None
    low: list[int] = []
    high: list[int] = []
    for rate in rates:
        below = high[-1] if high else cycles
        high.append(min(below, floor((rate + half) * cycles + _SLACK)))
        low.append(max(0, ceil((rate - half) * cycles - _SLACK)))
    for i in range(len(low) - 2, -1, -1):
        low[i] = max(low[i], low[i + 1])
    if any(a > b for a, b in zip(low, high, strict=True)) or not sum(low) <= total <= sum(high):
        return None
    made: list[int] = []
    for i, rate in enumerate(rates):
        above = made[-1] if made else cycles
        made.append(max(low[i], min(high[i], above, round(rate * cycles))))
    for i, j in zip(range(len(made)), reversed(range(len(made))), strict=True):
        if (left := total - sum(made)) > 0:
            made[i] = min(high[i], made[i - 1] if i else cycles, made[i] + left)
        elif left < 0:
            made[j] = max(low[j], made[j + 1] if j + 1 < len(made) else 0, made[j] + left)
    return made if sum(made) == total else None


def cycles_of(
    accepted: int,
    drafted: int,
    mean: float,
    half: float,
    rates: Sequence[float] = (),
    rate_half: float = 0.0,
    depth: int | None = None,
) -> tuple[int, bool]:
    """Return how many cycles a rounded mean stands for, and whether only that number can be.

    Accepted and drafted tokens are exact; `mean` is 1 + accepted / cycles, rounded to within `half`, the survival
    rates, where they are printed too, to within `rate_half`; `depth` is the most tokens that a cycle drafts, where
    known. Full drafts in every cycle where that fits; else the number nearest to the mean among those that rates and
    drafted tokens allow. 0 where none does.
    """
    extra = mean - 1
    if extra + half <= 0 or (not accepted and extra > half):
        return 0, False
    low = max(1, ceil(accepted / (extra + half) - _SLACK))
    high = floor(accepted / (extra - half) + _SLACK) if accepted and extra > half else drafted
    # Every cycle drafts a token at least, and `depth` at most.
    high = min(high, drafted)
    if depth:
        low = max(low, -(-drafted // depth))
    if low > high:
        return 0, False

    def fits(cycles: int) -> bool:
        return not rates or survivors(rates, rate_half, cycles, accepted) is not None

    if depth and drafted % depth == 0 and low == drafted // depth and fits(low):
        return low, True
    nearest = min(max(round(accepted / extra) if extra > 0 else low, low), high)
    tried = range(max(low, nearest - _TRIED), min(high, nearest + _TRIED) + 1)
    possible = [cycles for cycles in sorted(tried, key=lambda cycles: abs(cycles - nearest)) if fits(cycles)]
    return (possible[0] if possible else 0), len(possible) == 1
