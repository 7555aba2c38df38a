"""From a log to a forecast and its check: fit, forecast, validate, with intervals that resample whole prompts."""

from gumiho_simulator.forecasting.fitting import FitResult, fit
from gumiho_simulator.forecasting.intervals import rate_intervals, tau_interval
from gumiho_simulator.forecasting.judged import JudgedForecast
from gumiho_simulator.forecasting.published import forecast_points, parse_points
from gumiho_simulator.forecasting.sample_size import Comparison, compare
from gumiho_simulator.forecasting.summary import LogSummary, LogWarning, read_log, summarize
from gumiho_simulator.forecasting.tau import Forecast, Forecasts, forecast
from gumiho_simulator.forecasting.validation import Validation, validate

__all__ = [
    "Comparison",
    "FitResult",
    "Forecast",
    "Forecasts",
    "JudgedForecast",
    "LogSummary",
    "LogWarning",
    "Validation",
    "compare",
    "fit",
    "forecast",
    "forecast_points",
    "parse_points",
    "rate_intervals",
    "read_log",
    "summarize",
    "tau_interval",
    "validate",
]
