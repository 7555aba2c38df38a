"""The early-token theorem: checked exactly, certified, sampled, judged on logs, and broken where it may break.

Its proof by machine is the room `proof`, imported when it is first asked for, since it needs SymPy.
"""

from importlib import import_module
from typing import Any

from gumiho_theory.theorem.boundary import Counterexample, MoveEffect, counterexample, move_effect
from gumiho_theory.theorem.cases import random_cases
from gumiho_theory.theorem.certificate import Certificate, Move, verify_certificate
from gumiho_theory.theorem.check import STATEMENTS, TheoremCheck, check_theorem
from gumiho_theory.theorem.losses import LargestLoss, largest_loss
from gumiho_theory.theorem.montecarlo import sample_cases, sample_cycles
from gumiho_theory.theorem.verdicts import Verdict, verdict

__all__ = [
    "STATEMENTS",
    "Certificate",
    "Counterexample",
    "LargestLoss",
    "Move",
    "MoveEffect",
    "TheoremCheck",
    "Verdict",
    "check_theorem",
    "counterexample",
    "largest_loss",
    "move_effect",
    "random_cases",
    "sample_cases",
    "sample_cycles",
    "verdict",
    "verify_certificate",
]


def __getattr__(name: str) -> Any:
    if name == "proof":
        return import_module(f"{__name__}.proof")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
