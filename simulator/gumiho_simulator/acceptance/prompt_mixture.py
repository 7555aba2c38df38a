"""Prompts of different difficulty: one shared shift of all rates a prompt, drawn from a normal law."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.acceptance.chain.likelihood import maximise
from gumiho_simulator.acceptance.chain.links import anchored, logistic
from gumiho_simulator.acceptance.hazard import HazardModel
from gumiho_simulator.acceptance.observed.counts import positions
from gumiho_simulator.acceptance.observed.observations import Observations
from gumiho_theory import AcceptanceCounts, conditional_to_survival

FloatArray = NDArray[np.float64]

_NODES = 21
# Standard deviations of the priors on the levels (about 0) and on the log of the spread (about log 0.3).
_LEVEL, _LOG_SPREAD = 3.0, 1.0
_FIRST_SPREAD = np.log(0.3)


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """Rates logistic(b_i + u) with u normal about 0 by prompt (a logistic mixed model, Gauss-Hermite quadrature).

    A hard prompt takes more cycles for the same text, and the more so the longer the drafts: with every prompt's tokens
    fixed, cycles are pooled with the weights that the draft length asked for would give them. Difficulty that changes
    within a prompt is not seen. Rates of the logged draft are the measured ones; the mixture says how they change.

    Parameters
    ----------
    observed
        Counts by prompt.
    levels : ndarray [D]
        b_i, logits.
    spread
        Standard deviation of u.
    """

    observed: Observations
    levels: FloatArray
    spread: float

    name = "mixture"
    needs = ()
    extrapolates = True
    restarts = False

    @classmethod
    def fit(cls, observed: Observations) -> Self:
        """Fit to counts by prompt, by maximum likelihood with weak priors.

        Raises
        ------
        InputError
            The counts lack positions, or no cycle was at risk.
        """
        hazard = HazardModel.fit(observed)
        at_risk, accepted = (part[:, : hazard.support] for part in positions(observed.counts))
        cycles = at_risk[:, 0].sum()
        rates = np.clip(hazard.conditional(hazard.support), 0.01, 0.99)
        begin = np.append(np.log(rates / (1 - rates)), _FIRST_SPREAD)

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            levels, log_spread = theta[:-1], theta[-1]
            joint, slope, steps = _by_node(at_risk, accepted, levels, float(np.exp(log_spread)))
            top = joint.max(axis=1)
            value = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
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
    def counts(self) -> AcceptanceCounts:
        """The counts of the fit, by prompt."""
        return self.observed.counts

    @cached_property
    def _hazard(self) -> HazardModel:
        return HazardModel(self.counts)

    @property
    def support(self) -> int:
        """Deepest position whose survival the counts determine."""
        return self._hazard.support

    @property
    def parameters(self) -> dict[str, Any]:
        """Rates of a prompt of middling difficulty, and the standard deviation of prompts on the logit scale."""
        return {"conditional": logistic(self.levels).tolist(), "spread": self.spread}

    def conditional(self, depth: int) -> FloatArray:
        """Conditional rates of positions 1..depth of chain:`depth`, pooled over the cycles it would take.

        Parameters
        ----------
        depth
            Draft length; may exceed `support`, then the last level is taken to hold on.

        Returns
        -------
        ndarray [depth]
            Rates in [0, 1].
        """
        weights = np.ones((1, len(self.counts.groups)))
        rates: FloatArray = self._carried(weights, self._hazard.conditional(self.support)[None], depth)[0]
        return rates

    def refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Refit to reweighted prompts, the levels and the spread kept.

        Parameters
        ----------
        weights : ndarray [B, G]
            How often each prompt enters each refit.
        depth
            Draft length.

        Returns
        -------
        ndarray [B, depth]
            Conditional rates.
        """
        return self._carried(weights, self._hazard.refitted(weights, self.support), depth)

    def log_likelihood(self, observed: Observations, smoothing: float = 0.0) -> float:
        """Log-likelihood (nats) of counts, each prompt's shift integrated out; `smoothing` is not needed."""
        at_risk, accepted = (part[:, : self.support] for part in positions(observed.counts))
        joint, _, _ = _by_node(at_risk, accepted, self.levels[: at_risk.shape[1]], self.spread)
        top = joint.max(axis=1)
        return float((top + np.log(np.exp(joint - top[:, None]).sum(axis=1))).sum())

    @cached_property
    def _shares(self) -> FloatArray:
        """Tokens of each prompt times the posterior of its shift, [G, nodes]."""
        at_risk, accepted = (part[:, : self.support] for part in positions(self.counts))
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

    def _carried(self, weights: FloatArray, measured: FloatArray, depth: int) -> FloatArray:
        if not depth:
            return np.zeros((len(weights), 0))
        shares = weights @ self._shares
        # A resample may hold nothing but prompts without tokens.
        shares[shares.sum(axis=1) == 0] = self._shares.sum(axis=0)
        at_risk, _ = positions(self.counts)
        seen = at_risk.sum(axis=0)[: self.support]
        return anchored(measured, self._pooled(shares, self.support), self._pooled(shares, depth), seen)


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
