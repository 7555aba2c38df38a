"""`gumiho traces show`: a log summed up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gumiho_simulator.commands.shared.options import Json, LogFile
from gumiho_simulator.commands.shared.output import TAU, present, quantities, warnings_as_lines

_FACTS = ("cycles", "prompts", "tau", "tau_ci", "tau_macro", "mean_committed", "censored_cycles")
_PROMISED = ("expected_tau", "expected_tau_error", "expected_tau_error_ci")
_RATES = ("at_risk", "conditional", "conditional_ci", "survival", "survival_ci")


def show(file: LogFile, json: Json = False) -> None:
    """Sum up a log: tau, rates by draft position with prompt-clustered 95 % intervals, times.

    Example: gumiho traces show trace.parquet
    """
    from gumiho_simulator.forecasting import read_log, summarize

    with warnings_as_lines():
        log = read_log(file)
    result = summarize(log).to_json()
    present(result, json, lambda: _tables(result, file))


def _tables(result: dict[str, Any], file: Path) -> Iterator[Any]:
    from gumiho_simulator.reports.tables import table, text

    promised = _PROMISED if result["expected_tau"] is not None else ()
    names = (*_FACTS, *promised, "draft_ms", "verify_ms")
    clusters = result["clusters"]
    yield quantities([(clusters if name == "prompts" else name, result[name]) for name in names], str(file))
    if result["conditional"] is not None:
        rows = [(i, *one) for i, one in enumerate(zip(*(result[key] for key in _RATES), strict=True), start=1)]
        headings = ("position", "at risk", "conditional", "95 %", "survival", "95 %")
        yield table(headings, [[text(value, 2) for value in row] for row in rows])
    yield f"{TAU}; intervals 95 %, {clusters} resampled"
