"""From rates and logs to forecasts: predict, fit, forecast, validate, replay, calibrate, allocate; the rooms say how.

Names and rooms are imported when they are first asked for, so that every command starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gumiho_simulator.allocating import Allocation, Allocations, allocate
    from gumiho_simulator.calibrating import Calibrated, calibrate
    from gumiho_simulator.costs import Prediction, predict
    from gumiho_simulator.forecasting import (
        FitResult,
        Forecast,
        LogWarning,
        Validation,
        fit,
        forecast,
        read_log,
        validate,
    )
    from gumiho_simulator.replaying import PositionImportance, Replay, importance, replay
    from gumiho_simulator.reports import DemoSummary, NearTie, TreeDrawing, write_report

_NAMES = {
    "allocating": ("Allocation", "Allocations", "allocate"),
    "calibrating": ("Calibrated", "calibrate"),
    "costs": ("Prediction", "predict"),
    "forecasting": ("FitResult", "Forecast", "LogWarning", "Validation", "fit", "forecast", "read_log", "validate"),
    "replaying": ("PositionImportance", "Replay", "importance", "replay"),
    "reports": ("DemoSummary", "NearTie", "TreeDrawing", "write_report"),
}
_ROOM = {name: room for room, names in _NAMES.items() for name in names}
_ROOMS = (*_NAMES, "acceptance", "figures", "importers", "scoreboard")

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
    "Prediction",
    "Replay",
    "TreeDrawing",
    "Validation",
    "allocate",
    "calibrate",
    "fit",
    "forecast",
    "importance",
    "predict",
    "read_log",
    "replay",
    "validate",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in _ROOM:
        return getattr(import_module(f"{__name__}.{_ROOM[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_ROOMS])
