"""Logs: the cycle trace, the every-position log, and the counts they are summed up to; their schemas and files."""

from gumiho_theory.logs.columns import EVERY_POSITION_SCHEMA, STOP_REASONS, TRACE_SCHEMA
from gumiho_theory.logs.counts import AcceptanceCounts
from gumiho_theory.logs.every_position import EveryPositionLog
from gumiho_theory.logs.ranks import RankRates, rank_rates
from gumiho_theory.logs.rows import RowLog
from gumiho_theory.logs.trace import Trace

__all__ = [
    "EVERY_POSITION_SCHEMA",
    "STOP_REASONS",
    "TRACE_SCHEMA",
    "AcceptanceCounts",
    "EveryPositionLog",
    "RankRates",
    "RowLog",
    "Trace",
    "rank_rates",
]
