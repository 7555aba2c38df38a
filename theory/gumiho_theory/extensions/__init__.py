"""Beyond the paper: trees, speed, hidden difficulty, cycles that follow one another."""

from gumiho_theory.extensions.dependence import HiddenStates, ShiftCheck, check_shift
from gumiho_theory.extensions.examples import EXAMPLES
from gumiho_theory.extensions.speed import PositionCosts, exchange, speed_sensitivity, speedup
from gumiho_theory.extensions.text_cycles import expected_cycles
from gumiho_theory.extensions.trees import TreeCheck, check_tree
from gumiho_theory.extensions.worth import depth_worth, node_worth, rank_worth

__all__ = [
    "EXAMPLES",
    "HiddenStates",
    "PositionCosts",
    "ShiftCheck",
    "TreeCheck",
    "check_shift",
    "check_tree",
    "depth_worth",
    "exchange",
    "expected_cycles",
    "node_worth",
    "rank_worth",
    "speed_sensitivity",
    "speedup",
]
