"""One rate for every draft position: the geometric model of the speculative-decoding papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.acceptance.observed.counts import binomial_log_likelihood, positions
from gumiho_simulator.acceptance.observed.observations import Observations
from gumiho_theory import AcceptanceCounts

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class GeometricModel:
    """Every position is accepted with the same conditional rate (Leviathan et al., 2023, eq. 1).

    The maximum-likelihood rate with censoring is all acceptances over all positions at risk. The baseline
    that position-dependent models are compared with; it yields rates beyond what was observed.

    Parameters
    ----------
    counts
        Cycles at risk and accepted, by prompt and position.
    """

    counts: AcceptanceCounts

    name = "geometric"
    needs = ()
    extrapolates = True
    restarts = False

    @classmethod
    def fit(cls, observed: Observations) -> Self:
        """Fit to counts by prompt.

        Raises
        ------
        InputError
            The counts lack positions, or no cycle was at risk.
        """
        positions(observed.counts)
        return cls(observed.counts)

    @property
    def rate(self) -> float:
        """The conditional rate of every position."""
        at_risk, accepted = positions(self.counts)
        return float(accepted.sum() / at_risk.sum())

    @property
    def support(self) -> int:
        """Deepest position that some cycle was at risk of."""
        at_risk, _ = positions(self.counts)
        return int(np.flatnonzero(at_risk.sum(axis=0))[-1]) + 1

    @property
    def parameters(self) -> dict[str, Any]:
        """The one rate."""
        return {"rate": self.rate}

    def conditional(self, depth: int) -> FloatArray:
        """Conditional rates of positions 1..depth, all equal.

        Parameters
        ----------
        depth
            Number of positions; may exceed `support`.

        Returns
        -------
        ndarray [depth]
            Rates in [0, 1].
        """
        return np.full(depth, self.rate)

    def refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Refit to reweighted prompts.

        Parameters
        ----------
        weights : ndarray [B, G]
            How often each prompt enters each refit.
        depth
            Number of positions.

        Returns
        -------
        ndarray [B, depth]
            Conditional rates; a resample without a cycle at risk keeps the pooled rate.
        """
        at_risk, accepted = (part.sum(axis=1) for part in positions(self.counts))
        whole = weights @ at_risk
        rates = np.divide(weights @ accepted, whole, out=np.full(whole.shape, self.rate), where=whole > 0)
        return np.repeat(rates[:, None], depth, axis=1)

    def log_likelihood(self, observed: Observations, smoothing: float = 0.0) -> float:
        """Log-likelihood of counts under the fitted rate.

        Parameters
        ----------
        observed
            Counts by position.
        smoothing
            Added to both outcomes of the rate; 0 is the fit itself.

        Returns
        -------
        float
            Nats.
        """
        seen, won = (part.sum() for part in positions(self.counts))
        at_risk, accepted = (part.sum(axis=0) for part in positions(observed.counts))
        rate = (won + smoothing) / (seen + 2 * smoothing)
        return binomial_log_likelihood(at_risk, accepted, np.full(at_risk.shape, rate))
