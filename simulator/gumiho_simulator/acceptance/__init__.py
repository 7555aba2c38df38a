"""Acceptance models: what is fitted to counts, and what yields conditional rates by draft position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.acceptance.geometric import GeometricModel
from gumiho_simulator.acceptance.hazard import HazardModel
from gumiho_theory import AcceptanceCounts, InputError

FloatArray = NDArray[np.float64]


class AcceptanceModel(Protocol):
    """A model of the accepted length L of one cycle, fitted to counts kept apart by prompt.

    Every rate is conditional: P(position i accepted, given that 1..i-1 were).
    """

    @property
    def name(self) -> str:
        """Name on the command line and in files."""
        ...

    @property
    def counts(self) -> AcceptanceCounts:
        """The counts of the fit, by prompt; what intervals resample."""
        ...

    @property
    def support(self) -> int:
        """Deepest draft position for which the counts say something."""
        ...

    @property
    def extrapolates(self) -> bool:
        """Whether `conditional` yields rates beyond `support`."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """What was estimated, for people and files."""
        ...

    @classmethod
    def fit(cls, counts: AcceptanceCounts) -> Self:
        """Fit by maximum likelihood, with censoring."""
        ...

    def conditional(self, depth: int) -> FloatArray:
        """Conditional rates of positions 1..depth, shape [depth]."""
        ...

    def refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Rates [B, depth] after refitting to prompts weighted by each row of weights [B, G]."""
        ...

    def log_likelihood(self, counts: AcceptanceCounts, smoothing: float = 0.0) -> float:
        """Log-likelihood (nats) of counts, `smoothing` added to both outcomes of each rate."""
        ...


MODELS: Mapping[str, type[HazardModel] | type[GeometricModel]] = {
    "hazard": HazardModel,
    "geometric": GeometricModel,
}


def model_class(name: str) -> type[HazardModel] | type[GeometricModel]:
    """Look a model up by its name.

    Parameters
    ----------
    name
        "hazard" or "geometric".

    Returns
    -------
    type
        The model's class.

    Raises
    ------
    InputError
        No model has that name; the message says which exist.
    """
    if name not in MODELS:
        raise InputError("model", repr(name), f"one of {', '.join(MODELS)}")
    return MODELS[name]


__all__ = ["MODELS", "AcceptanceModel", "GeometricModel", "HazardModel", "model_class"]
