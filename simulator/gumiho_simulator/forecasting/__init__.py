"""From a log to a forecast and its check: fit, forecast, validate, with intervals that resample whole prompts."""

from gumiho_simulator.forecasting.expected import ExpectedTau, expected_tau
from gumiho_simulator.forecasting.fitting import FitResult, fit, possible
from gumiho_simulator.forecasting.forecasts import Forecast, forecast
from gumiho_simulator.forecasting.intervals import Interval, pmf_intervals, rate_intervals, tau_interval
from gumiho_simulator.forecasting.published import forecast_points, parse_points
from gumiho_simulator.forecasting.sample_size import Comparison, compare
from gumiho_simulator.forecasting.summary import LogWarning, read_log, summarize
from gumiho_simulator.forecasting.validation import Validation, ValidationRow, validate

__all__ = [
    "Comparison",
    "ExpectedTau",
    "FitResult",
    "Forecast",
    "Interval",
    "LogWarning",
    "Validation",
    "ValidationRow",
    "compare",
    "expected_tau",
    "fit",
    "forecast",
    "forecast_points",
    "parse_points",
    "pmf_intervals",
    "possible",
    "rate_intervals",
    "read_log",
    "summarize",
    "tau_interval",
    "validate",
]
