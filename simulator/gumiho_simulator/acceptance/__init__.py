"""Acceptance models: what is fitted to a log, and yields the conditional rates of any chain by draft position."""

from gumiho_simulator.acceptance.geometric import GeometricModel
from gumiho_simulator.acceptance.hazard import HazardModel
from gumiho_simulator.acceptance.hidden_markov import HiddenMarkovModel
from gumiho_simulator.acceptance.model import AcceptanceModel
from gumiho_simulator.acceptance.models import MODELS, model_class, simulate_lengths
from gumiho_simulator.acceptance.observed import Observations
from gumiho_simulator.acceptance.prompt_mixture import MixtureModel
from gumiho_simulator.acceptance.rank_table import RankTableModel

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
