"""What a log shows a model: counts by prompt, cycles in their order, ranks."""

from gumiho_simulator.acceptance.observed.counts import KaplanMeier, binomial_log_likelihood, positions
from gumiho_simulator.acceptance.observed.cycle_log import CycleLog
from gumiho_simulator.acceptance.observed.evidence import Observations
from gumiho_simulator.acceptance.observed.rank_counts import RankCounts

__all__ = ["CycleLog", "KaplanMeier", "Observations", "RankCounts", "binomial_log_likelihood", "positions"]
