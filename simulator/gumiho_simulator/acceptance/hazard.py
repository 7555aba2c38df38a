"""One free conditional rate a draft position: the Kaplan-Meier estimate of the accepted length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.acceptance.observed.counts import binomial_log_likelihood, positions
from gumiho_simulator.acceptance.observed.observations import Observations
from gumiho_theory import AcceptanceCounts, InputError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HazardModel:
    """Conditional rates estimated one position at a time: accepted / at risk.

    L is a discrete survival time and 1 - p_i its hazard; a cycle cut short (end of the text, end of the
    context) stays at risk up to the cut. The product of the rates is the Kaplan-Meier survival (Kaplan and
    Meier, 1958). Nothing is assumed about a position that no cycle reached, so the model refuses to go
    beyond `support`.

    Parameters
    ----------
    counts
        Cycles at risk and accepted, by prompt and position.
    """

    counts: AcceptanceCounts

    name = "hazard"
    needs = ()
    extrapolates = False
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
    def support(self) -> int:
        """Deepest position whose survival the counts determine.

        A position never reached because an earlier rate is 0 counts as determined: its survival is 0.
        """
        known = np.isfinite(self._rates())
        return int(known.size if known.all() else np.argmin(known))

    @property
    def parameters(self) -> dict[str, Any]:
        """The conditional rates of positions 1..support."""
        return {"conditional": self.conditional(self.support).tolist()}

    def _rates(self) -> FloatArray:
        at_risk, accepted = positions(self.counts)
        rates = _ratio(accepted.sum(axis=0), at_risk.sum(axis=0))
        # After a rate of 0 nothing is at risk, but nothing survives either: any rate gives the same law of
        # L.
        dead = np.cumsum(rates == 0.0) > 0
        return np.where(np.isnan(rates) & dead, 0.0, rates)

    def conditional(self, depth: int) -> FloatArray:
        """Pooled conditional rates of positions 1..depth.

        Parameters
        ----------
        depth
            Number of positions, at most `support`.

        Returns
        -------
        ndarray [depth]
            Rates in [0, 1].

        Raises
        ------
        InputError
            `depth` is beyond `support`.
        """
        if depth > self.support:
            raise InputError("draft length", depth, f"at most {self.support}, the deepest position observed")
        return self._rates()[:depth]

    def refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Refit to reweighted prompts.

        Parameters
        ----------
        weights : ndarray [B, G]
            How often each prompt enters each refit.
        depth
            Number of positions, at most `support`.

        Returns
        -------
        ndarray [B, depth]
            Conditional rates; a position that no cycle of a resample reaches keeps the pooled rate.
        """
        at_risk, accepted = positions(self.counts)
        rates = _ratio(weights @ accepted[:, :depth], weights @ at_risk[:, :depth])
        filled: FloatArray = np.where(np.isnan(rates), self.conditional(depth), rates)
        return filled

    def log_likelihood(self, observed: Observations, smoothing: float = 0.0) -> float:
        """Log-likelihood of counts under the fitted rates.

        Parameters
        ----------
        observed
            Counts with as many positions as the fit's.
        smoothing
            Added to both outcomes of each rate; 0 is the fit itself, 0.5 the Krichevsky-Trofimov rule that
            keeps a rate off 0 and 1 when other prompts are scored.

        Returns
        -------
        float
            Nats.
        """
        seen, won = (part.sum(axis=0) for part in positions(self.counts))
        at_risk, accepted = (part.sum(axis=0) for part in positions(observed.counts))
        return binomial_log_likelihood(at_risk, accepted, _ratio(won + smoothing, seen + 2 * smoothing))


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)
    return ratio
