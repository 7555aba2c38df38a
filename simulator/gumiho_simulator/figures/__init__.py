"""Figures: data and an Axes in, the Axes out; one file a subject.

Every plot function draws on `ax`, or on a new figure in the shared style where none is given, and returns the axes.
"""

from gumiho_simulator.figures.allocations import plot_by_split, plot_front
from gumiho_simulator.figures.axes import style
from gumiho_simulator.figures.bench import plot_bench
from gumiho_simulator.figures.file import check_figure, write_figure
from gumiho_simulator.figures.forecasts import plot_forecasts, plot_length_laws, plot_residuals
from gumiho_simulator.figures.importance import plot_importance
from gumiho_simulator.figures.masks import plot_attention_mask
from gumiho_simulator.figures.paper import plot_published, plot_ratio_predictions
from gumiho_simulator.figures.rates import plot_cycle_time, plot_length_distribution, plot_rates
from gumiho_simulator.figures.reliability import plot_reliability
from gumiho_simulator.figures.theorem import plot_gain_by_mass, plot_harmful_region, plot_largest_loss, plot_sensitivity
from gumiho_simulator.figures.trees import plot_draft_tree

__all__ = [
    "check_figure",
    "plot_attention_mask",
    "plot_bench",
    "plot_by_split",
    "plot_cycle_time",
    "plot_draft_tree",
    "plot_forecasts",
    "plot_front",
    "plot_gain_by_mass",
    "plot_harmful_region",
    "plot_importance",
    "plot_largest_loss",
    "plot_length_distribution",
    "plot_length_laws",
    "plot_published",
    "plot_rates",
    "plot_ratio_predictions",
    "plot_reliability",
    "plot_residuals",
    "plot_sensitivity",
    "style",
    "write_figure",
]
