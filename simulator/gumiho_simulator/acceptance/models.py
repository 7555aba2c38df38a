"""The acceptance models by name, and accepted lengths drawn from any of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gumiho_simulator.acceptance.geometric import GeometricModel
from gumiho_simulator.acceptance.hazard import HazardModel
from gumiho_simulator.acceptance.hidden_markov import HiddenMarkovModel
from gumiho_simulator.acceptance.model import AcceptanceModel
from gumiho_simulator.acceptance.prompt_mixture import MixtureModel
from gumiho_simulator.acceptance.rank_table import RankTableModel
from gumiho_theory import InputError, length_pmf
from gumiho_theory.types import IntArray

MODELS: Mapping[str, type[AcceptanceModel]] = {
    kind.name: kind for kind in (HazardModel, GeometricModel, MixtureModel, HiddenMarkovModel, RankTableModel)
}


def model_class(name: str) -> type[AcceptanceModel]:
    """Look a model up by its name: "hazard", "geometric", "mixture", "hmm" or "rank".

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
    cycles
        Number of cycles; the time does not depend on it, the counts being one multinomial draw.

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
