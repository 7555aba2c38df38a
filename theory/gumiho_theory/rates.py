"""Conditional rates, survival rates, the accepted-length distribution, and tau.

Words used everywhere: the conditional rate p_i is P(position i accepted, given 1..i-1 accepted); the survival
rate m_i is P(L >= i) = p_1 ... p_i; L is the number of accepted draft tokens of a cycle, 0..D; tau = 1 + E[L]
counts the bonus token. All functions work in float64 on the last axis (length D, or D + 1 for a distribution)
and broadcast over the axes before it; D = 0 is legal. Source: Gumiho (arXiv 2503.10135), section 3.

Each raises InputError for a value that is not a number in [0, 1], and names its position (from 1; the lengths of a
distribution from 0); survival rates that rise and distributions that do not sum to 1 (within 1e-9) are refused too.
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


def _numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    try:
        array: npt.NDArray[Any] = np.asarray(values)
        if array.dtype.kind not in "fiubO":
            raise TypeError(f"values of type {array.dtype}")
        numbers = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(name, error, "a list of numbers") from None
    if numbers.ndim == 0:
        raise InputError(name, "a single number", "a list of numbers, one a position")
    return numbers


def _refuse(bad: BoolArray, values: FloatArray, name: str, wanted: str, first: int = 1) -> None:
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        batch = f"[{', '.join(map(str, index[:-1]))}]" if len(index) > 1 else ""
        raise InputError(f"{name}{batch}, position {index[-1] + first}", values[index], wanted)


def _conditional(values: npt.ArrayLike) -> FloatArray:
    p = _numbers(values, "conditional rates")
    _refuse(~((p >= 0) & (p <= 1)), p, "conditional rates", "a rate in [0, 1]")
    return p


def _survival(values: npt.ArrayLike) -> FloatArray:
    m = _numbers(values, "survival rates")
    _refuse(~((m >= 0) & (m <= 1)), m, "survival rates", "a rate in [0, 1]")
    rising = np.zeros(m.shape, dtype=bool)
    rising[..., 1:] = m[..., 1:] > m[..., :-1]
    _refuse(rising, m, "survival rates", "no more than the rate before it")
    return m


def _pmf(values: npt.ArrayLike) -> FloatArray:
    pmf = _numbers(values, "length distribution")
    _refuse(~((pmf >= 0) & (pmf <= 1)), pmf, "length distribution", "a probability in [0, 1]", first=0)
    total = pmf.sum(axis=-1)
    if (np.abs(total - 1.0) > _SUM_TOLERANCE).any():
        worst = float(np.ravel(total)[np.argmax(np.abs(np.ravel(total) - 1.0))])
        raise InputError("length distribution", f"a sum of {worst}", "a sum of 1")
    return pmf


def _before(survival: FloatArray) -> FloatArray:
    """P(L >= i - 1) beside P(L >= i): survival rates moved by one, 1 first."""
    return np.concatenate([np.ones((*survival.shape[:-1], 1)), survival], axis=-1)[..., :-1]


def _ratio(survival: FloatArray) -> FloatArray:
    before = _before(survival)
    rates: FloatArray = np.full(survival.shape, np.nan)
    np.divide(survival, before, out=rates, where=before > 0)
    return rates


def conditional_to_survival(p: npt.ArrayLike) -> FloatArray:
    """Survival rates P(L >= i) = p_1 ... p_i, [..., D], from conditional rates `p` [..., D]."""
    survival: FloatArray = np.cumprod(_conditional(p), axis=-1, dtype=np.float64)
    return survival


def survival_to_conditional(m: npt.ArrayLike) -> FloatArray:
    """Conditional rates m_i / m_{i-1} (m_0 = 1), [..., D], from survival rates `m` [..., D].

    nan after the survival rate has reached 0, where they are undefined.
    """
    return _ratio(_survival(m))


def length_pmf(p: npt.ArrayLike) -> FloatArray:
    """Distribution of the accepted length, P(L = 0), ..., P(L = D), from conditional rates `p` [..., D]; no bonus.

    Returns
    -------
    float array [..., D + 1]
        m_l (1 - p_{l+1}), and m_D for l = D.
    """
    rates = _conditional(p)
    one = np.ones((*rates.shape[:-1], 1))
    reached = np.concatenate([one, np.cumprod(rates, axis=-1)], axis=-1)
    # A product, not a difference of survival rates: never negative, exact zeros stay zero.
    pmf: FloatArray = reached * np.concatenate([1.0 - rates, one], axis=-1)
    return pmf


def pmf_to_survival(pmf: npt.ArrayLike) -> FloatArray:
    """Survival rates P(L >= i), i = 1..D, from the distribution of L, `pmf` [..., D + 1]."""
    tails = np.cumsum(_pmf(pmf)[..., ::-1], axis=-1)[..., ::-1]
    survival: FloatArray = np.minimum(tails[..., 1:], 1.0)
    return survival


def pmf_to_conditional(pmf: npt.ArrayLike) -> FloatArray:
    """Conditional rates [..., D] from the distribution of L, `pmf` [..., D + 1]; nan behind a survival rate of 0."""
    return _ratio(pmf_to_survival(pmf))


def expected_accepted(p: npt.ArrayLike) -> np.float64 | FloatArray:
    """Return E[L] = sum_i p_1 ... p_i, [...], from conditional rates `p` [..., D]: accepted draft tokens, no bonus."""
    total: np.float64 | FloatArray = conditional_to_survival(p).sum(axis=-1)
    return total


def tau(p: npt.ArrayLike) -> np.float64 | FloatArray:
    """Mean acceptance length tau = 1 + E[L], [...], from conditional rates `p` [..., D]; bonus token included.

    For rates pooled over all cycles this is the micro tau. Between 1 and D + 1.
    """
    return 1.0 + expected_accepted(p)


def sensitivity(p: npt.ArrayLike) -> FloatArray:
    """Gradient d tau / d p_i = P_{i-1} W_i, [..., D], with respect to the conditional rates `p` [..., D].

    P_k = p_1 ... p_k and W_k = 1 + p_{k+1} + p_{k+1} p_{k+2} + ...; computed without dividing by rates, so zero rates
    are allowed.
    """
    rates = _conditional(p)
    after = np.ones_like(rates)
    for k in range(rates.shape[-1] - 2, -1, -1):
        after[..., k] = 1.0 + rates[..., k + 1] * after[..., k + 1]
    gradient: FloatArray = _before(np.cumprod(rates, axis=-1, dtype=np.float64)) * after
    return gradient
