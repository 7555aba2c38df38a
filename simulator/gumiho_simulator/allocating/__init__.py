"""Which split of serial and parallel heads pays: by rates of each type of head, by logs, over a grid of forecasts."""

from gumiho_simulator.allocating.files import read_profiles, read_traces
from gumiho_simulator.allocating.heads import Allocation, Allocations, HeadCosts, pareto_front
from gumiho_simulator.allocating.logged import allocate_folder, allocate_traces
from gumiho_simulator.allocating.search import allocate
from gumiho_simulator.allocating.sweeps import Grid, SweepResult, sweep

__all__ = [
    "Allocation",
    "Allocations",
    "Grid",
    "HeadCosts",
    "SweepResult",
    "allocate",
    "allocate_folder",
    "allocate_traces",
    "pareto_front",
    "read_profiles",
    "read_traces",
    "sweep",
]
