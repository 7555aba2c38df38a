"""One rate for every draft position: the geometric model of the speculative-decoding papers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gumiho_simulator.acceptance.model import AcceptanceModel
from gumiho_simulator.acceptance.observed.counts import binomial_log_likelihood, positions
from gumiho_simulator.acceptance.observed.evidence import Observations
from gumiho_theory.types import FloatArray


class GeometricModel(AcceptanceModel):
    """Every position is accepted with the same conditional rate (Leviathan et al., 2023, eq. 1).

    The maximum-likelihood rate with censoring is all acceptances over all positions at risk. The baseline
    that position-dependent models are compared with; it yields rates beyond what was observed.
    """

    name = "geometric"
    beyond = "the same rate is assumed further on"

    @property
    def rate(self) -> float:
        """The conditional rate of every position."""
        return float(self.measured.accepted.sum() / self.measured.at_risk.sum())

    @property
    def support(self) -> int:
        """Deepest position that some cycle was at risk of."""
        return int(np.flatnonzero(self.measured.at_risk.sum(axis=0))[-1]) + 1

    @property
    def parameters(self) -> dict[str, Any]:
        """The one rate."""
        return {"rate": self.rate}

    def _refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        at_risk, accepted = self.measured.at_risk.sum(axis=1), self.measured.accepted.sum(axis=1)
        whole = weights @ at_risk
        rates = np.divide(weights @ accepted, whole, out=np.full(whole.shape, self.rate), where=whole > 0)
        return np.repeat(rates[:, None], depth, axis=1)

    def log_likelihood(self, observed: Observations, smoothing: float = 0.0) -> float:
        """Return the log-likelihood under the one rate; see `AcceptanceModel`."""
        at_risk, accepted = (part.sum(axis=0) for part in positions(observed.counts))
        rate = (self.measured.accepted.sum() + smoothing) / (self.measured.at_risk.sum() + 2 * smoothing)
        return binomial_log_likelihood(at_risk, accepted, np.full(at_risk.shape, rate))
