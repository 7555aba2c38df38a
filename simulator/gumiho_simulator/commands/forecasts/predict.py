"""`gumiho predict`: what rates by position give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json
from gumiho_simulator.commands.shared.output import present

if TYPE_CHECKING:
    from gumiho_simulator.costs.prediction import Prediction


def predict(
    rates: Annotated[
        str, typer.Option(help="Acceptance rates of positions 1..D: decimals or fractions, comma-separated.")
    ],
    survival: Annotated[
        bool, typer.Option("--survival", help="The rates are P(L >= i), as vLLM logs them, not conditional.")
    ] = False,
    draft_ms: Annotated[
        str | None, typer.Option(help="a[,b]: one serial draft step, and all parallel heads once, in ms.")
    ] = None,
    verify_ms: Annotated[str | None, typer.Option(help="One verification by the target, in ms.")] = None,
    baseline_ms: Annotated[str | None, typer.Option(help="One step of plain decoding, in ms.")] = None,
    serial: Annotated[int, typer.Option(min=0, help="Serial steps before the parallel heads (with b).")] = 2,
    json: Json = False,
) -> None:
    """Compute tau (bonus included), the accepted-length distribution and speed-up from rates.

    Example: gumiho predict --rates 0.88,0.89,0.78 --draft-ms 0.5 --verify-ms 3.2 --baseline-ms 1.8
    """
    from gumiho_simulator.commands.shared.typed import named_as_options, parse_numbers, parse_rates, parse_time
    from gumiho_simulator.costs.prediction import predict as predict_rates

    with named_as_options("draft_ms", "verify_ms", "baseline_ms"):
        found = predict_rates(
            parse_rates("--rates", rates),
            survival,
            verify_ms=None if verify_ms is None else parse_time("--verify-ms", verify_ms),
            baseline_ms=None if baseline_ms is None else parse_time("--baseline-ms", baseline_ms),
            draft_ms=None if draft_ms is None else parse_numbers("--draft-ms", draft_ms),
            serial=serial,
        )
    present(found.to_json(), json, lambda: _tables(found))


def _tables(found: Prediction) -> Iterator[Any]:
    from gumiho_simulator.reports.tables import table

    rows = [[0, None, 1.0, float(found.pmf[0]), None]]
    by_position = zip(found.conditional, found.survival, found.pmf[1:], found.sensitivity, strict=True)
    rows += [[i, *map(float, values)] for i, values in enumerate(by_position, start=1)]
    yield table(("position", "conditional", "survival", "P(L = i)", "d tau / d p"), rows)
    yield f"tau {found.tau:.4f} (bonus included), {found.expected_accepted:.4f} draft tokens accepted a cycle"
    if found.cycle_ms is not None:
        yield f"cycle {found.cycle_ms:.3f} ms, speed-up {found.speedup:.3f}x over plain decoding"
