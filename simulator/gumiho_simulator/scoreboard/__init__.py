"""How far forecasts are off: models fitted at one structure on some prompts, judged at others on the rest."""

from gumiho_simulator.scoreboard.files import check_places, read_logs, score_folder, write_scoreboard
from gumiho_simulator.scoreboard.rows import ScoreRow, ScoreSummary
from gumiho_simulator.scoreboard.scoring import Scoreboard, scoreboard
from gumiho_simulator.scoreboard.transfers import TransferValidation, score_transfers

__all__ = [
    "ScoreRow",
    "ScoreSummary",
    "Scoreboard",
    "TransferValidation",
    "check_places",
    "read_logs",
    "score_folder",
    "score_transfers",
    "scoreboard",
    "write_scoreboard",
]
