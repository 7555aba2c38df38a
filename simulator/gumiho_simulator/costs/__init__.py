"""What a cycle costs, measured, fitted or estimated, and the speed-up that follows."""

from gumiho_simulator.costs.accelerators import Accelerator, accelerator
from gumiho_simulator.costs.cycle import CycleCost, fit_cycle_cost
from gumiho_simulator.costs.paper import every_half, predict_ratios, published_speedups
from gumiho_simulator.costs.roofline import Setting, roofline_profile
from gumiho_simulator.costs.shapes import ModelShape, model_shape
from gumiho_simulator.costs.speed import ChainSpeeds, chain_speeds, with_speed
from gumiho_simulator.costs.step_time import StepTime, fit_step_time

__all__ = [
    "Accelerator",
    "ChainSpeeds",
    "CycleCost",
    "ModelShape",
    "Setting",
    "StepTime",
    "accelerator",
    "chain_speeds",
    "every_half",
    "fit_cycle_cost",
    "fit_step_time",
    "model_shape",
    "predict_ratios",
    "published_speedups",
    "roofline_profile",
    "with_speed",
]
