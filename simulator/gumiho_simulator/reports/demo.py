"""The report: one HTML page that opens offline, and its figures as files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gumiho_simulator.figures.file import svg_text
from gumiho_simulator.figures.rates import plot_cycle_time, plot_length_distribution, plot_rates
from gumiho_simulator.figures.trees import plot_draft_tree, tree_figure_size
from gumiho_simulator.forecasting.intervals import Interval, rate_intervals, ratio_interval
from gumiho_simulator.forecasting.validation import Validation
from gumiho_simulator.reports.facts import DemoSummary
from gumiho_simulator.reports.page import inline_svg, template, write_files
from gumiho_theory import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (5.4, 3.7)
_NAMES = {"rates": "rates_by_position", "length": "accepted_length", "time": "cycle_time", "tree": "draft_tree"}
_PARTS = ("draft", "verify", "other")


def write_report(folder: str | os.PathLike[str], trace: Trace, validation: Validation, summary: DemoSummary) -> Path:
    """Write ``index.html`` and ``figures/*.svg``.

    Everything is computed before anything is written, and each file replaces its predecessor in one step.

    Parameters
    ----------
    folder
        Where to write; made when missing.
    trace
        All cycles of the run.
    validation
        The hold-out on the same trace.
    summary
        Headline numbers that the trace does not hold.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InputError
        The folder or a file in it cannot be written.
    """
    place = Path(folder)
    rates = rate_intervals(trace.counts_by_prompt(), np.random.default_rng(validation.seed))
    times = cycle_times(trace, validation.seed)
    figures = _figures(rates, times, validation, summary)
    page = _page(trace, validation, summary, rates, times, figures)
    # On the page a figure lies on a card of the page's colour; alone, it needs a ground of its own.
    ground = r'\1<rect width="100%" height="100%" fill="#ffffff"/>'
    alone = {f"figures/{name}.svg": re.sub(r"(<svg\b[^>]*>)", ground, svg, count=1) for name, svg in figures.items()}
    write_files(place, {**alone, "index.html": page})
    return place / "index.html"


def cycle_times(trace: Trace, seed: int) -> dict[str, tuple[float, float, float]]:
    """Mean time of each part of a cycle with prompt-clustered 95 % limits.

    Returns dict: Of "draft", "verify", "other" those measured: mean, low, high in milliseconds a cycle; limits nan with
    fewer than two prompts.
    """
    times: dict[str, tuple[float, float, float]] = {}
    prompts = {prompt: index for index, prompt in enumerate(trace.prompts)}
    rows = np.array([prompts[prompt] for prompt in trace.prompt_id], dtype=np.int64)
    for part in _PARTS:
        milliseconds = 1000 * getattr(trace, f"{part}_seconds")
        known = np.isfinite(milliseconds)
        if not known.any():
            continue
        sums = np.bincount(rows[known], milliseconds[known], minlength=len(prompts))
        cycles = np.bincount(rows[known], minlength=len(prompts))
        limits = ratio_interval(sums, cycles, np.random.default_rng(seed)) or (np.nan, np.nan)
        times[part] = (float(milliseconds[known].mean()), *limits)
    return times


def _figures(
    rates: tuple[Interval, Interval],
    times: dict[str, tuple[float, float, float]],
    validation: Validation,
    summary: DemoSummary,
) -> dict[str, str]:
    """Draw every figure for which there is data, as SVG text by name."""
    drawn: dict[str, tuple[tuple[float, float], Callable[[Axes], Axes]]] = {
        "rates": (_SIZE, lambda ax: plot_rates(*rates, ax=ax))
    }
    predicted = best_forecast(validation)
    if predicted is not None:
        drawn["length"] = (_SIZE, lambda ax: plot_length_distribution(predicted, validation.measured_pmf, ax=ax))
    if times:
        drawn["time"] = ((5.4, 3.3), lambda ax: plot_cycle_time(times, summary.plain_step_ms, summary.tau, ax=ax))
    if summary.drawing is not None:
        one = summary.drawing
        size = tree_figure_size(one.tree, one.accepted, one.q_draft)
        drawn["tree"] = (size, lambda ax: plot_draft_tree(one.tree, one.labels, one.accepted, one.q_draft, ax=ax))
    return {_NAMES[key]: _svg(key, *asked) for key, asked in drawn.items()}


def best_forecast(validation: Validation) -> tuple[float, ...] | None:
    """Return P(L = 0..D) of the model with the higher held-out likelihood; None when every model refused."""
    candidates = [
        (-np.inf if fit.heldout_log_likelihood is None else fit.heldout_log_likelihood, one.pmf)
        for fit, one in zip(validation.fits, validation.forecasts, strict=True)
        if one.pmf is not None
    ]
    return max(candidates, key=lambda pair: pair[0])[1] if candidates else None


def _svg(name: str, size: tuple[float, float], draw: Callable[[Axes], Axes]) -> str:
    return svg_text(name, size, lambda figure: draw(figure.add_subplot()))


def _page(
    trace: Trace,
    validation: Validation,
    summary: DemoSummary,
    rates: tuple[Interval, Interval],
    times: Mapping[str, tuple[float, float, float]],
    figures: Mapping[str, str],
) -> str:
    from markupsafe import Markup

    conditional, survival = rates
    at_risk = trace.counts_by_prompt().at_risk
    positions = [
        {
            "position": i + 1,
            "at_risk": int(np.asarray(at_risk)[:, i].sum()),
            "conditional": _at(conditional, i),
            "survival": _at(survival, i),
        }
        for i in range(conditional.estimate.size)
    ]
    return template("report.html.j2").render(
        summary=summary,
        validation=validation,
        headline=_headline_row(validation),
        positions=positions,
        times=times,
        cycle_ms=sum(mean for mean, _, _ in times.values()) if times else None,
        cycles=trace.n_cycles,
        censored=int((~trace.complete).sum()),
        # The SVG text is made here from escaped strings; everything else the template escapes.
        figures={name: Markup(inline_svg(svg, name.replace("_", " "))) for name, svg in figures.items()},
        provenance={**trace.provenance, **summary.provenance},
    )


def _headline_row(validation: Validation) -> Any:
    """Return the row of the first model that gave a forecast with an interval, or else the first row."""
    with_limits = [row for row in validation.rows if row.inside is not None]
    return (with_limits or list(validation.rows))[0]


def _at(interval: Interval, i: int) -> tuple[float, float, float]:
    return float(interval.estimate[i]), float(interval.low[i]), float(interval.high[i])
