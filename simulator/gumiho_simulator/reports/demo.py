"""The report: one HTML page that opens offline, and its figures as files."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gumiho_simulator.figures.basics import (
    plot_cycle_time,
    plot_length_distribution,
    plot_rates,
    style,
)
from gumiho_simulator.figures.trees import plot_draft_tree, tree_figure_size
from gumiho_simulator.forecasting.intervals import Interval, rate_intervals, ratio_interval
from gumiho_simulator.forecasting.validation import Validation
from gumiho_simulator.reports.facts import DemoSummary
from gumiho_simulator.reports.page import inline_svg, template
from gumiho_theory import InputError, Trace
from gumiho_theory.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (5.4, 3.7)
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
    try:
        (place / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(place), error.strerror or str(error), "a folder that can be written") from error
    for name, svg in figures.items():
        # On the page a figure lies on a card of the page's colour; alone, it needs a ground of its own.
        ground = re.sub(r"(<svg\b[^>]*>)", r'\1<rect width="100%" height="100%" fill="#ffffff"/>', svg, count=1)
        _write_text(place / "figures" / f"{name}.svg", ground)
    _write_text(place / "index.html", page)
    return place / "index.html"


def cycle_times(trace: Trace, seed: int) -> dict[str, tuple[float, float, float]]:
    """Mean time of each part of a cycle with prompt-clustered 95 % limits.

    Parameters
    ----------
    trace
        A cycle trace.
    seed
        Seed of the resampling.

    Returns
    -------
    dict
        Of "draft", "verify", "other" those measured: mean, low, high in milliseconds a cycle; limits nan
        with fewer than two prompts.
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
    figures = {"rates_by_position": _svg("rates", _SIZE, lambda ax: plot_rates(*rates, ax=ax))}
    predicted = best_forecast(validation)
    if predicted is not None:
        figures["accepted_length"] = _svg(
            "length", _SIZE, lambda ax: plot_length_distribution(predicted, validation.measured_pmf, ax=ax)
        )
    if times:
        figures["cycle_time"] = _svg(
            "time", (5.4, 3.3), lambda ax: plot_cycle_time(times, summary.plain_step_ms, summary.tau, ax=ax)
        )
    drawing = summary.drawing
    if drawing is not None:
        size = tree_figure_size(drawing.tree, drawing.accepted, drawing.q_draft)
        figures["draft_tree"] = _svg(
            "tree",
            size,
            lambda ax: plot_draft_tree(drawing.tree, drawing.labels, drawing.accepted, drawing.q_draft, ax=ax),
        )
    return figures


def best_forecast(validation: Validation) -> tuple[float, ...] | None:
    """Return the forecast distribution of L of the model with the higher held-out likelihood.

    Parameters
    ----------
    validation
        A hold-out.

    Returns
    -------
    tuple of float or None
        P(L = 0..D); None when every model refused.
    """
    candidates = [
        (-np.inf if fit.heldout_log_likelihood is None else fit.heldout_log_likelihood, one.pmf)
        for fit, one in zip(validation.fits, validation.forecasts, strict=True)
        if one.pmf is not None
    ]
    return max(candidates, key=lambda pair: pair[0])[1] if candidates else None


def _svg(name: str, size: tuple[float, float], draw: Callable[[Axes], Axes]) -> str:
    """Draw one figure without touching matplotlib's global state; equal data give equal text."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # Ids within an SVG are hashed with the salt, so that several figures can share one page.
    with rc_context({**style(), "svg.fonttype": "path", "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.add_subplot())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


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


def _write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))
