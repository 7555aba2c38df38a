"""From draft probabilities to acceptance probabilities: maps, fitted and judged on other prompts."""

from gumiho_simulator.calibrating.error import CalibrationError, Reliability, calibration_error, reliability
from gumiho_simulator.calibrating.fitted import GOOD, Calibrated, calibrate

__all__ = ["GOOD", "Calibrated", "CalibrationError", "Reliability", "calibrate", "calibration_error", "reliability"]
