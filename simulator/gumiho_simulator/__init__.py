"""From acceptance counts to forecasts: fit, forecast and validate, with prompt-clustered intervals.

SciPy, matplotlib and jinja2 are imported inside the functions that use them, so that importing the package,
and with it every command, stays quick. The functions are imported here eagerly: three of them share their
module's name, and a lazy attribute would turn into the module as soon as anything imported that module.
"""

from __future__ import annotations

from gumiho_simulator.allocate import allocate
from gumiho_simulator.allocation import Allocation, Allocations
from gumiho_simulator.calibrate import Calibrated, calibrate
from gumiho_simulator.fit import FitResult, fit
from gumiho_simulator.forecast import Forecast, forecast
from gumiho_simulator.importance import PositionImportance, importance
from gumiho_simulator.replay import Replay, replay
from gumiho_simulator.report import write_report
from gumiho_simulator.report_data import DemoSummary, NearTie, TreeDrawing
from gumiho_simulator.summary import LogWarning, read_log
from gumiho_simulator.validate import Validation, validate

__all__ = [
    "Allocation",
    "Allocations",
    "Calibrated",
    "DemoSummary",
    "FitResult",
    "Forecast",
    "LogWarning",
    "NearTie",
    "PositionImportance",
    "Replay",
    "TreeDrawing",
    "Validation",
    "allocate",
    "calibrate",
    "fit",
    "forecast",
    "importance",
    "read_log",
    "replay",
    "validate",
    "write_report",
]
