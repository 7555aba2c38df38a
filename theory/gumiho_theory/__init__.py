"""Theory and shared vocabulary of speculative decoding: rates, the theorem, draft trees, costs, traces."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gumiho_theory.drafts.calibration import IsotonicMap, ScoreCalibration, TemperatureMap
from gumiho_theory.drafts.structure import AutoStructure, ChainStructure, DynamicTree, StaticTree, Structure
from gumiho_theory.drafts.tree import DraftTree
from gumiho_theory.errors import InputError
from gumiho_theory.logs.counts import AcceptanceCounts
from gumiho_theory.logs.every_position import EveryPositionLog
from gumiho_theory.logs.ranks import RankRates, rank_rates
from gumiho_theory.logs.trace import Trace
from gumiho_theory.profile import CostProfile
from gumiho_theory.rates import (
    conditional_to_survival,
    expected_accepted,
    length_pmf,
    sensitivity,
    survival_to_conditional,
    tau,
)
from gumiho_theory.theorem.certificate import Certificate, Move, verify_certificate
from gumiho_theory.theorem.check import TheoremCheck, check_theorem

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


def __getattr__(name: str) -> Any:
    if name == "extensions":  # the one room that nothing else here needs
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
