"""How far forecasts are off: models fitted at one structure on some prompts, judged at others on the rest."""

from gumiho_simulator.scoreboard.board import Scoreboard, scoreboard
from gumiho_simulator.scoreboard.files import check_places, read_logs, write_scoreboard
from gumiho_simulator.scoreboard.rows import ScoreRow, ScoreSummary
from gumiho_simulator.scoreboard.transfers import TransferRow, TransferValidation, score_transfers

__all__ = [
    "ScoreRow",
    "ScoreSummary",
    "Scoreboard",
    "TransferRow",
    "TransferValidation",
    "check_places",
    "read_logs",
    "score_transfers",
    "scoreboard",
    "write_scoreboard",
]
