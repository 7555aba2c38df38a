"""What another structure would have had accepted on a logged text: exact, no model."""

from gumiho_simulator.replaying.as_trace import replay_trace
from gumiho_simulator.replaying.in_sample import in_sample_note, made_from
from gumiho_simulator.replaying.replayed import Replay, replay
from gumiho_simulator.replaying.worth import PositionImportance, importance

__all__ = ["PositionImportance", "Replay", "importance", "in_sample_note", "made_from", "replay", "replay_trace"]
