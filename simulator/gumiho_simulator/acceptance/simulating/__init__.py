"""Cycles drawn in order from a fitted model."""

from gumiho_simulator.acceptance.simulating.draws import SimulatedOutputs, simulate_outputs

__all__ = ["SimulatedOutputs", "simulate_outputs"]
