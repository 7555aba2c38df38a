"""Prompts of different difficulty: one shared shift of all rates a prompt, drawn from a normal distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gumiho_simulator.acceptance.chain.likelihood import maximise
from gumiho_simulator.acceptance.chain.links import anchored, logistic
from gumiho_simulator.acceptance.model import AcceptanceModel
from gumiho_simulator.acceptance.observed.counts import KaplanMeier, positions
from gumiho_simulator.acceptance.observed.evidence import Observations
from gumiho_theory import conditional_to_survival
from gumiho_theory.types import FloatArray

_NODES = 21
# Standard deviations of the priors on the levels (about 0) and on the log of the spread (about log 0.3).
_LEVEL, _LOG_SPREAD = 3.0, 1.0
_FIRST_SPREAD = np.log(0.3)


@dataclass(frozen=True, eq=False)
class MixtureModel(AcceptanceModel):
    """Rates logistic(b_i + u) with u normal about 0 by prompt (a logistic mixed model, Gauss-Hermite quadrature).

    A hard prompt takes more cycles for the same text, and the more so the longer the drafts: with every prompt's tokens
    fixed, cycles are pooled with the weights that the draft length asked for would give them. Difficulty that changes
    within a prompt is not seen. Rates of the logged draft are the measured ones; the mixture says how they change.

    Parameters
    ----------
    levels : ndarray [D]
        b_i, logits.
    spread
        Standard deviation of u.
    """

    levels: FloatArray
    spread: float

    name = "mixture"
    beyond = "the last rate is assumed further on"

    @classmethod
    def fit(cls, observed: Observations) -> Self:
        """Fit to counts by prompt, by maximum likelihood with weak priors; see `AcceptanceModel`."""
        measured = KaplanMeier(observed.counts)
        depth = measured.support
        at_risk, accepted = measured.at_risk[:, :depth], measured.accepted[:, :depth]
        cycles = at_risk[:, 0].sum()
        rates = np.clip(measured.rates[:depth], 0.01, 0.99)
        begin = np.append(np.log(rates / (1 - rates)), _FIRST_SPREAD)

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            levels, log_spread = theta[:-1], theta[-1]
            joint, slope, steps = _by_node(at_risk, accepted, levels, float(np.exp(log_spread)))
            value = _marginal(joint)
            share = np.exp(joint - value[:, None])
            gradient = np.append(
                (share[:, :, None] * slope).sum(axis=(0, 1)), (share * slope.sum(axis=2) * steps).sum()
            )
            off = np.append(levels / _LEVEL**2, (log_spread - _FIRST_SPREAD) / _LOG_SPREAD**2)
            prior = 0.5 * ((levels / _LEVEL) ** 2).sum() + 0.5 * ((log_spread - _FIRST_SPREAD) / _LOG_SPREAD) ** 2
            return float(value.sum() - prior) / cycles, (gradient - off) / cycles

        bounds = [(-12.0, 12.0)] * len(rates) + [(float(_FIRST_SPREAD) - 5, float(np.log(5)))]
        best = maximise(objective, begin, bounds)
        return cls(observed, best[:-1], float(np.exp(best[-1])))

    @property
    def parameters(self) -> dict[str, Any]:
        """Rates of a prompt of middling difficulty, and the standard deviation of prompts on the logit scale."""
        return {"conditional": logistic(self.levels).tolist(), "spread": self.spread}

    def _refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Refit the measured rates and the mix of prompts, the levels and the spread kept."""
        shares = weights @ self._shares
        # A resample may hold nothing but prompts without tokens.
        shares[shares.sum(axis=1) == 0] = self._shares.sum(axis=0)
        measured = self.measured.refitted(weights, self.support)
        seen = self.measured.at_risk.sum(axis=0)[: self.support]
        return anchored(measured, self._pooled(shares, self.support), self._pooled(shares, depth), seen)

    def log_likelihood(self, observed: Observations, smoothing: float = 0.0) -> float:
        """Return the log-likelihood of counts, each prompt's shift integrated out; see `AcceptanceModel`."""
        at_risk, accepted = (part[:, : self.support] for part in positions(observed.counts))
        joint, _, _ = _by_node(at_risk, accepted, self.levels[: at_risk.shape[1]], self.spread)
        return float(_marginal(joint).sum())

    @cached_property
    def _shares(self) -> FloatArray:
        """Tokens of each prompt times the posterior of its shift, [G, nodes]."""
        at_risk, accepted = (part[:, : self.support] for part in (self.measured.at_risk, self.measured.accepted))
        joint, _, _ = _by_node(at_risk, accepted, self.levels, self.spread)
        share = np.exp(joint - joint.max(axis=1, keepdims=True))
        tokens = self.counts.cycles + np.asarray(self.counts.accepted).sum(axis=1)
        shares: FloatArray = tokens[:, None] * share / share.sum(axis=1, keepdims=True)
        return shares

    def _pooled(self, shares: FloatArray, depth: int) -> FloatArray:
        """Rates [B, depth] of chain:`depth` pooled over its cycles, for tokens [B, nodes] of each difficulty."""
        deeper = np.full(max(0, depth - self.support), self.levels[-1])
        levels = np.append(self.levels[:depth], deeper)
        nodes, _ = _quadrature()
        survival = conditional_to_survival(logistic(levels[None, :] + self.spread * nodes[:, None]))
        cycles = shares / (1 + survival.sum(axis=1))
        pooled = cycles @ survival / cycles.sum(axis=1, keepdims=True)
        rates: FloatArray = pooled / np.concatenate([np.ones((len(pooled), 1)), pooled[:, :-1]], axis=1)
        return rates


def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Return nodes and log-weights of a standard normal expectation."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, np.log(weights / weights.sum())


def _by_node(
    at_risk: FloatArray, accepted: FloatArray, levels: FloatArray, spread: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return joint log-likelihoods [G, nodes], their slopes in the levels [G, nodes, D], and u [nodes]."""
    nodes, log_weights = _quadrature()
    logits = levels + spread * nodes[:, None]
    # k log p + (n - k) log(1 - p) = k logit p - n log(1 + exp(logit p))
    joint = log_weights + accepted @ logits.T - at_risk @ np.logaddexp(0, logits).T
    slope = accepted[:, None, :] - at_risk[:, None, :] * logistic(logits)
    return joint, slope, spread * nodes


def _marginal(joint: FloatArray) -> FloatArray:
    """Return the log of the sum over nodes [G] of joint likelihoods given by their logs [G, nodes]."""
    top = joint.max(axis=1)
    summed: FloatArray = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
    return summed
