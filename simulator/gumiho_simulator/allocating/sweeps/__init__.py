"""Many forecasts over a grid: in parallel, resumable, in one file."""

from gumiho_simulator.allocating.sweeps.run import Grid, SweepResult, sweep

__all__ = ["Grid", "SweepResult", "sweep"]
