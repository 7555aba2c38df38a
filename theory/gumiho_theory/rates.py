"""Conditional rates, survival rates, the accepted-length distribution, and tau.

Words used everywhere: the conditional rate p_i is P(position i accepted, given 1..i-1 accepted); the survival
rate m_i is P(L >= i) = p_1 ... p_i; L is the number of accepted draft tokens of a cycle, 0..D; tau = 1 + E[L]
counts the bonus token. Source: Gumiho (arXiv 2503.10135), section 3.

All functions take one array_like and work in float64 on its last axis, position 1 first: length D for rates, D + 1 for
a distribution P(L = 0), ..., P(L = D), which sums to 1 within 1e-9. They broadcast over the axes before it; D = 0 is
legal. InputError names the position (and the index before it) of what is no number in [0, 1], of a survival rate that
rises, or the sum of what is no distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gumiho_theory.errors import InputError
from gumiho_theory.types import BoolArray, FloatArray

# Positions of a draft that any file, log or command may name.
MAX_DEPTH = 512
_SUM_TOLERANCE = 1e-9


def conditional_to_survival(p: npt.ArrayLike) -> FloatArray:
    """Survival rates m_i = p_1 ... p_i [..., D] from conditional rates [..., D]."""
    survival: FloatArray = np.cumprod(_conditional(p), axis=-1, dtype=np.float64)
    return survival


def survival_to_conditional(m: npt.ArrayLike) -> FloatArray:
    """Conditional rates p_i = m_i / m_{i-1} [..., D] from survival rates [..., D]; m_0 = 1.

    They are nan, since undefined, after the survival rate has reached 0.
    """
    survival = _probabilities(m, "survival rates", "a rate in [0, 1]")
    rising = np.zeros(survival.shape, dtype=bool)
    rising[..., 1:] = survival[..., 1:] > survival[..., :-1]
    _refuse(rising, survival, "survival rates", "no more than the rate before it")
    return _ratio(survival)


def length_pmf(p: npt.ArrayLike) -> FloatArray:
    """Distribution of the accepted length L [..., D + 1] from conditional rates [..., D]; no bonus token.

    P(L = l) is m_l (1 - p_{l+1}) for l < D, and m_D for l = D.
    """
    rates = _conditional(p)
    # A product, not a difference of survival rates: never negative, exact zeros stay zero.
    pmf: FloatArray = _after_one(np.cumprod(rates, axis=-1)) * np.concatenate([1.0 - rates, _one(rates)], axis=-1)
    return pmf


def pmf_to_survival(pmf: npt.ArrayLike) -> FloatArray:
    """Survival rates P(L >= i) [..., D] from the distribution of L [..., D + 1]."""
    p_length = _probabilities(pmf, "length distribution", "a probability in [0, 1]", first=0)
    total = np.ravel(p_length.sum(axis=-1))
    worst = total[np.argmax(np.abs(total - 1.0))] if total.size else 1.0
    if abs(worst - 1.0) > _SUM_TOLERANCE:
        raise InputError("length distribution", f"a sum of {float(worst)}", "a sum of 1")
    tails = np.cumsum(p_length[..., ::-1], axis=-1)[..., ::-1]
    survival: FloatArray = np.minimum(tails[..., 1:], 1.0)
    return survival


def pmf_to_conditional(pmf: npt.ArrayLike) -> FloatArray:
    """Conditional rates [..., D] from the distribution of L [..., D + 1]; nan after the survival rate has reached 0."""
    return _ratio(pmf_to_survival(pmf))


def expected_accepted(p: npt.ArrayLike) -> np.float64 | FloatArray:
    """Return the expected accepted length E[L] = sum_i p_1 ... p_i [...], 0 to D, of rates [..., D]; no bonus token."""
    total: np.float64 | FloatArray = conditional_to_survival(p).sum(axis=-1)
    return total


def tau(p: npt.ArrayLike) -> np.float64 | FloatArray:
    """Mean acceptance length tau = 1 + E[L] [...], 1 to D + 1, from conditional rates [..., D]; bonus token included.

    For rates pooled over all cycles this is the micro tau.
    """
    return 1.0 + expected_accepted(p)


def sensitivity(p: npt.ArrayLike) -> FloatArray:
    """Gradient d tau / d p_i = P_{i-1} W_i [..., D] in the conditional rates [..., D]; see `gradient_terms`."""
    before, after = gradient_terms(_conditional(p))
    return before * after


def gradient_terms(p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P_{i-1} and W_i, i = 1..D, whose product is dE[L]/dp_i; of float arrays [..., D] that are taken as they are.

    P_k = p_1 ... p_k and W_k = 1 + p_{k+1} + p_{k+1} p_{k+2} + ...; computed without dividing by rates, so
    zero rates are allowed.
    """
    before = _after_one(np.cumprod(p, axis=-1))[..., :-1]
    after: FloatArray = np.ones_like(p)
    for k in range(p.shape[-1] - 2, -1, -1):
        after[..., k] = 1.0 + p[..., k + 1] * after[..., k + 1]
    return before, after


def _conditional(values: npt.ArrayLike) -> FloatArray:
    return _probabilities(values, "conditional rates", "a rate in [0, 1]")


def _probabilities(values: npt.ArrayLike, name: str, wanted: str, first: int = 1) -> FloatArray:
    """Return float64 once all are numbers in [0, 1]; `first` is the number of the first position."""
    try:
        array: npt.NDArray[Any] = np.asarray(values)
        if array.dtype.kind not in "fiubO":
            raise TypeError(f"values of type {array.dtype}")
        numbers = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(name, error, "a list of numbers") from None
    if numbers.ndim == 0:
        raise InputError(name, "a single number", "a list of numbers, one a position")
    _refuse(~((numbers >= 0) & (numbers <= 1)), numbers, name, wanted, first)
    return numbers


def _refuse(bad: BoolArray, values: FloatArray, name: str, wanted: str, first: int = 1) -> None:
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        batch = f"[{', '.join(map(str, index[:-1]))}]" if len(index) > 1 else ""
        raise InputError(f"{name}{batch}, position {index[-1] + first}", values[index], wanted)


def _ratio(survival: FloatArray) -> FloatArray:
    before = _after_one(survival)[..., :-1]
    rates: FloatArray = np.full(survival.shape, np.nan)
    np.divide(survival, before, out=rates, where=before > 0)
    return rates


def _after_one(values: npt.NDArray[np.floating[Any]]) -> FloatArray:
    """Return [..., D + 1] with 1 before the values [..., D]."""
    return np.concatenate([_one(values), values], axis=-1, dtype=np.float64)


def _one(values: npt.NDArray[np.floating[Any]]) -> FloatArray:
    return np.ones((*values.shape[:-1], 1))
