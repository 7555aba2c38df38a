"""Probabilities on the logit scale, where corrections add up and stay in [0, 1]."""

from __future__ import annotations

import numpy as np

from gumiho_theory.types import AnyArray, FloatArray


def logistic(x: AnyArray) -> AnyArray:
    """1 / (1 + exp(-x)); complex numbers pass through, for derivatives by a complex step."""
    value: AnyArray = 0.5 * (1 + np.tanh(x / 2))
    return value


def logit(rates: FloatArray) -> FloatArray:
    """log(p / (1 - p)); 0 and 1 give -inf and inf."""
    with np.errstate(divide="ignore"):
        value: FloatArray = np.log(rates) - np.log1p(-rates)
    return value


def anchored(measured: FloatArray, modelled: FloatArray, asked: FloatArray, weights: FloatArray) -> FloatArray:
    """Move measured rates by what a model says changes from the logged draft to the one asked for, [..., K].

    Rates are conditional, `measured` and `modelled` of the log [..., D]. At the logged draft itself the result is the
    measured rates, whatever the model: the model is trusted with the change alone. Beyond the measured positions the
    model's own rates are shifted by the average misfit, weighted by `weights` [D], cycles at risk.
    """
    known = min(measured.shape[-1], asked.shape[-1])
    misfit = logit(measured) - logit(modelled)
    # A measured rate of exactly 0 or 1 has no misfit to speak of beyond its own position.
    finite = np.isfinite(misfit)
    usable = np.where(finite, weights, 0.0)
    total = usable.sum(axis=-1, keepdims=True)
    mean = np.divide(
        (usable * np.where(finite, misfit, 0.0)).sum(axis=-1, keepdims=True),
        total,
        out=np.zeros_like(total),
        where=total > 0,
    )
    tail = np.broadcast_to(mean, (*asked.shape[:-1], asked.shape[-1] - known))
    shifts = np.concatenate([np.broadcast_to(misfit[..., :known], (*asked.shape[:-1], known)), tail], axis=-1)
    moved: FloatArray = logistic(logit(asked) + shifts)
    # tanh turns the infinities of a measured 0 or 1 into exactly 0 or 1.
    return moved
