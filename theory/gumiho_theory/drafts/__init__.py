"""Drafts: what a drafter is asked for, the trees it makes, and what its scores are worth."""

from gumiho_theory.drafts.calibration import IsotonicMap, ScoreCalibration, TemperatureMap
from gumiho_theory.drafts.structure import AutoStructure, ChainStructure, DynamicTree, StaticTree, Structure
from gumiho_theory.drafts.tree import DraftTree

__all__ = [
    "AutoStructure",
    "ChainStructure",
    "DraftTree",
    "DynamicTree",
    "IsotonicMap",
    "ScoreCalibration",
    "StaticTree",
    "Structure",
    "TemperatureMap",
]
