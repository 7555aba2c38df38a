"""Acceptance models: what is fitted to a log, and what yields conditional rates of any chain by draft position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.acceptance.geometric import GeometricModel
from gumiho_simulator.acceptance.hazard import HazardModel
from gumiho_simulator.acceptance.hidden_markov import HiddenMarkovModel
from gumiho_simulator.acceptance.observed.observations import Observations
from gumiho_simulator.acceptance.prompt_mixture import MixtureModel
from gumiho_simulator.acceptance.rank_table import RankTableModel
from gumiho_theory import AcceptanceCounts, InputError, length_pmf

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ModelClass = (
    type[HazardModel] | type[GeometricModel] | type[MixtureModel] | type[HiddenMarkovModel] | type[RankTableModel]
)


class AcceptanceModel(Protocol):
    """A model of the accepted length L of one cycle, fitted to a log kept apart by prompt.

    Every rate is conditional: P(position i accepted, given that 1..i-1 were), pooled over the cycles of a draft.
    """

    @property
    def name(self) -> str:
        """Name on the command line and in files."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """Parts of `Observations` that a fit needs beside the counts."""
        ...

    @property
    def counts(self) -> AcceptanceCounts:
        """The counts of the fit, by prompt; what intervals resample."""
        ...

    @property
    def support(self) -> int:
        """Deepest draft position for which the log says something."""
        ...

    @property
    def extrapolates(self) -> bool:
        """Whether `conditional` yields rates beyond `support`."""
        ...

    @property
    def restarts(self) -> bool:
        """Whether rates take into account where the cycles of another draft length would begin."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """What was estimated, for people and files."""
        ...

    @classmethod
    def fit(cls, observed: Observations) -> Self:
        """Fit by maximum likelihood, with censoring."""
        ...

    def conditional(self, depth: int) -> FloatArray:
        """Conditional rates of positions 1..depth of chain:`depth`, shape [depth]."""
        ...

    def refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Rates [B, depth] after refitting to prompts weighted by each row of weights [B, G] (of mean 1)."""
        ...

    def log_likelihood(self, observed: Observations, smoothing: float = 0.0) -> float:
        """Log-likelihood (nats) of accepted lengths, each given the past of its prompt.

        `smoothing` is added to both outcomes of each rate where rates are ratios of counts.
        """
        ...


MODELS: Mapping[str, ModelClass] = {
    "hazard": HazardModel,
    "geometric": GeometricModel,
    "mixture": MixtureModel,
    "hmm": HiddenMarkovModel,
    "rank": RankTableModel,
}


def model_class(name: str) -> ModelClass:
    """Look a model up by its name.

    Parameters
    ----------
    name
        "hazard", "geometric", "mixture", "hmm" or "rank".

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


def simulate_lengths(model: AcceptanceModel, depth: int, cycles: int, generator: np.random.Generator) -> IntArray:
    """Count the accepted lengths of independent cycles of chain:`depth`.

    Parameters
    ----------
    model
        A fitted model.
    depth
        Draft length.
    cycles
        Number of cycles; the time does not depend on it, the counts being one multinomial draw.
    generator
        Source of randomness.

    Returns
    -------
    ndarray [depth + 1]
        Cycles with L = 0..depth.

    Raises
    ------
    InputError
        A negative number of cycles, or a depth that the model refuses.
    """
    if cycles < 0:
        raise InputError("cycles", cycles, "at least 0")
    pmf = np.clip(length_pmf(model.conditional(depth)), 0.0, 1.0)
    return generator.multinomial(cycles, pmf / pmf.sum())


__all__ = [
    "MODELS",
    "AcceptanceModel",
    "GeometricModel",
    "HazardModel",
    "HiddenMarkovModel",
    "MixtureModel",
    "Observations",
    "RankTableModel",
    "model_class",
    "simulate_lengths",
]
