"""Theory and shared vocabulary of speculative decoding: rates, the theorem, draft trees, costs, traces."""

from __future__ import annotations

from gumiho_theory.calibration import IsotonicMap, ScoreCalibration, TemperatureMap
from gumiho_theory.certificate import Certificate, Move, verify_certificate
from gumiho_theory.counts import AcceptanceCounts
from gumiho_theory.errors import InputError
from gumiho_theory.every_position import EveryPositionLog
from gumiho_theory.profile import CostProfile
from gumiho_theory.rank_rates import RankRates, rank_rates
from gumiho_theory.rates import (
    conditional_to_survival,
    expected_accepted,
    length_pmf,
    sensitivity,
    survival_to_conditional,
    tau,
)
from gumiho_theory.structure import AutoStructure, ChainStructure, DynamicTree, StaticTree, Structure
from gumiho_theory.theorem import TheoremCheck, check_theorem
from gumiho_theory.trace import Trace
from gumiho_theory.tree import DraftTree

__all__ = [
    "AcceptanceCounts",
    "AutoStructure",
    "Certificate",
    "ChainStructure",
    "CostProfile",
    "DraftTree",
    "DynamicTree",
    "EveryPositionLog",
    "InputError",
    "IsotonicMap",
    "Move",
    "RankRates",
    "ScoreCalibration",
    "StaticTree",
    "Structure",
    "TemperatureMap",
    "TheoremCheck",
    "Trace",
    "check_theorem",
    "conditional_to_survival",
    "expected_accepted",
    "length_pmf",
    "rank_rates",
    "sensitivity",
    "survival_to_conditional",
    "tau",
    "verify_certificate",
]
