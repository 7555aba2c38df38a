"""What a cycle costs, measured, fitted or estimated, and the speed-up that follows."""

from gumiho_simulator.costs.accelerators import accelerator
from gumiho_simulator.costs.cycle import CycleCost, fit_costs, fit_cycle_cost
from gumiho_simulator.costs.paper import every_half, predict_ratios, published_speedups
from gumiho_simulator.costs.prediction import Prediction, predict
from gumiho_simulator.costs.roofline import Estimate, Setting, estimate_profile, roofline_profile
from gumiho_simulator.costs.shapes import ModelShape, model_shape
from gumiho_simulator.costs.speed import ForecastSpeeds, chain_speeds, forecast_speeds
from gumiho_simulator.costs.step_time import fit_step_time

__all__ = [
    "CycleCost",
    "Estimate",
    "ForecastSpeeds",
    "ModelShape",
    "Prediction",
    "Setting",
    "accelerator",
    "chain_speeds",
    "estimate_profile",
    "every_half",
    "fit_costs",
    "fit_cycle_cost",
    "fit_step_time",
    "forecast_speeds",
    "model_shape",
    "predict",
    "predict_ratios",
    "published_speedups",
    "roofline_profile",
]
