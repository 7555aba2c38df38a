"""Files of evaluation scripts: EAGLE, Medusa, Hydra, Gumiho, Spec-Bench, HASS, SpecForge, speculators, SPEED-Bench."""

from gumiho_simulator.importers.evaluations.answers import Answers
from gumiho_simulator.importers.evaluations.gumiho import GumihoLog
from gumiho_simulator.importers.evaluations.round_lengths import Hass, SpecBench
from gumiho_simulator.importers.evaluations.specdec_bench import SpecdecBench
from gumiho_simulator.importers.evaluations.specforge import SpecForge
from gumiho_simulator.importers.evaluations.speculators import Speculators

__all__ = ["Answers", "GumihoLog", "Hass", "SpecBench", "SpecForge", "SpecdecBench", "Speculators"]
