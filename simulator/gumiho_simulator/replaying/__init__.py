"""What another structure would have had accepted on a logged text: exact, no model."""

from gumiho_simulator.replaying.as_trace import replay_trace
from gumiho_simulator.replaying.cycles import Replay, replay
from gumiho_simulator.replaying.static_trees import BestTree, best_tree
from gumiho_simulator.replaying.worth import Importance, PositionImportance, importance

__all__ = [
    "BestTree",
    "Importance",
    "PositionImportance",
    "Replay",
    "best_tree",
    "importance",
    "replay",
    "replay_trace",
]
