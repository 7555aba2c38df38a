"""The simulator's commands: predict, traces show, tree, fit, forecast, validate.

Heavy imports stand inside the commands, so that ``gumiho predict`` starts without SciPy or pyarrow. Bad
input raises InputError; the program that assembles the commands turns it into one line on standard error
and exit status 2.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from gumiho_simulator.commands.allocate import allocate, compare, cost, roofline
from gumiho_simulator.commands.calibrate import calibrate
from gumiho_simulator.commands.import_logs import import_traces, warnings_as_lines
from gumiho_simulator.commands.importance import importance
from gumiho_simulator.commands.replay import replay
from gumiho_simulator.commands.sweep import sweep
from gumiho_simulator.commands.validate import validate
from gumiho_theory import InputError
from gumiho_theory.json_output import dumps

traces_app = typer.Typer(help="Look at logged traces, and read the logs of others.")
traces_app.command("import")(import_traces)

_RANKS_SHOWN = 5

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def register(app: typer.Typer) -> None:
    """Add the simulator's commands to an application.

    Parameters
    ----------
    app
        The application to add to.
    """
    app.command("predict")(predict)
    app.command("tree")(tree)
    app.command("fit")(fit)
    app.command("forecast")(forecast)
    app.command("validate")(validate)
    app.command("importance")(importance)
    app.command("replay")(replay)
    app.command("calibrate")(calibrate)
    for command in (allocate, compare, cost, roofline, sweep):
        app.command(command.__name__)(command)
    app.add_typer(traces_app, name="traces")


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
    from gumiho_simulator.commands.numbers import parse_numbers, predict_rates, predict_speed

    result = predict_rates(parse_numbers("--rates", rates), survival)
    times = {"--draft-ms": draft_ms, "--verify-ms": verify_ms, "--baseline-ms": baseline_ms}
    if draft_ms is not None and verify_ms is not None and baseline_ms is not None:
        verify, baseline = (_one_number(name, times[name]) for name in ("--verify-ms", "--baseline-ms"))
        result |= predict_speed(parse_numbers("--draft-ms", draft_ms), verify, baseline, serial, result)
    elif any(value is not None for value in times.values()):
        missing = ", ".join(name for name, value in times.items() if value is None)
        wanted = "--draft-ms, --verify-ms and --baseline-ms together, or none of them"
        raise InputError("times", f"no {missing}", wanted)
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table

    columns = ("position", "conditional", "survival", "P(L = i)", "d tau / d p")
    rows: list[list[Any]] = [[0, None, 1.0, float(result["pmf"][0]), None]]
    for i in range(len(result["conditional"])):
        values = (result[key][i] for key in ("conditional", "survival"))
        rows.append([i + 1, *map(float, (*values, result["pmf"][i + 1], result["sensitivity"][i]))])
    accepted = f"{result['expected_accepted']:.4f} draft tokens accepted a cycle"
    lines = [f"tau {result['tau']:.4f} (bonus included), {accepted}"]
    if "cycle_ms" in result:
        lines.append(f"cycle {result['cycle_ms']:.3f} ms, speed-up {result['speedup']:.3f}x over plain decoding")
    show(table(columns, rows), *lines)


@traces_app.command("show")
def show_trace(
    file: Annotated[Path, typer.Argument(help="Cycle trace, counts, or a log that `traces import` reads.")],
    json: Json = False,
) -> None:
    """Sum up a log: tau, rates by draft position with prompt-clustered 95 % intervals, times.

    Example: gumiho traces show trace.parquet
    """
    from gumiho_simulator.forecasting.summary import read_log, summarize

    with warnings_as_lines():
        log = read_log(file)
    result = summarize(log).to_json()
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table, text

    facts: tuple[str, ...] = ("cycles", "prompts", "tau", "tau_ci", "tau_macro", "mean_committed", "censored_cycles")
    promised = ("expected_tau", "expected_tau_error", "expected_tau_error_ci")
    facts += promised if result["expected_tau"] is not None else ()
    pairs = [
        (result["clusters"] if name == "prompts" else name, result[name]) for name in (*facts, "draft_ms", "verify_ms")
    ]
    parts: list[Any] = [table(("quantity", "value"), pairs, str(file))]
    if result["conditional"] is not None:
        keys = ("at_risk", "conditional", "conditional_ci", "survival", "survival_ci")
        rows = [(i + 1, *(result[key][i] for key in keys)) for i in range(len(result["conditional"]))]
        headings = ("position", "at risk", "conditional", "95 %", "survival", "95 %")
        parts.append(table(headings, [[text(value, 2) for value in row] for row in rows]))
    show(*parts, f"tau: bonus included, micro, over complete cycles; intervals 95 %, {result['clusters']} resampled")


def tree(
    file: Annotated[Path, typer.Argument(help="Cycle trace (Parquet) that logs ranks.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Static tree file to write (JSON).")],
    nodes: Annotated[int, typer.Option(min=2, max=4096, help="Nodes of the tree, root included.")] = 16,
    ranks: Annotated[int, typer.Option(min=1, max=512, help="Candidates a node may open.")] = 10,
    json: Json = False,
) -> None:
    """Build the static draft tree with the largest expected accepted length from a log's rank rates.

    Example: gumiho tree trace.parquet --nodes 16 -o tree.json; then gumiho decode --structure static:tree.json …
    """
    from gumiho_simulator.replaying.static_trees import best_tree
    from gumiho_theory import Trace
    from gumiho_theory.files import check_output

    check_output(output, [file])
    best = best_tree(Trace.read(file), nodes, ranks)
    best.write(output, file)
    result = {**best.to_json(), "output": str(output)}
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table

    show(table(("quantity", "value"), list(result.items())))


def fit(
    file: Annotated[Path, typer.Argument(help="Cycle trace, counts, or a log that `traces import` reads.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Model file to write (JSON).")],
    model: Annotated[
        str,
        typer.Option(
            help="auto, geometric, hazard, mixture, hmm (needs a trace) or rank (static trees; needs ranks); "
            "auto takes the best on held-out prompts."
        ),
    ] = "auto",
    json: Json = False,
) -> None:
    """Fit an acceptance model to a log.

    Example: gumiho fit trace.parquet --model auto -o model.json
    """
    from gumiho_simulator.forecasting.fitting import fit as fit_log
    from gumiho_simulator.forecasting.summary import read_log
    from gumiho_theory.files import check_output

    check_output(output, [file])
    with warnings_as_lines():
        log = read_log(file)
    fitted = fit_log(log, model)
    fitted.write(output)
    result = {**fitted.summary(), "output": str(output)}
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table

    rows = [(key, value) for key, value in result.items() if key != "parameters"]
    rates = result["parameters"].get("rates") if fitted.model.name == "rank" else None
    rows += [] if rates else list(result["parameters"].items())
    parts: list[Any] = [table(("quantity", "value"), rows)]
    if rates:
        shown = rates[0][:_RANKS_SHOWN]
        ranked = [[depth, *one[:_RANKS_SHOWN], sum(one[_RANKS_SHOWN:])] for depth, one in enumerate(rates, start=1)]
        headings = ("depth", *(f"rank {rank}" for rank in range(1, len(shown) + 1)), "further")
        parts.append(table(headings, ranked, "P(the true token has the rank | the path before it was right)"))
        parts.append(f"all {len(rates[0])} ranks: --json, or {output}")
    show(*parts)


def forecast(
    model: Annotated[Path | None, typer.Argument(help="Model file written by fit.")] = None,
    more: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    lengths: Annotated[str | None, typer.Option(help="Chain lengths, comma-separated.")] = None,
    structures: Annotated[
        list[str] | None, typer.Option(help="Structures, such as chain:3 chain:5; after the model file.")
    ] = None,
    tau_by_length: Annotated[
        str | None, typer.Option(help="Published points K:tau, comma-separated, in place of a model file.")
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="Cost profile (JSON), for speed-ups.")] = None,
    json: Json = False,
) -> None:
    """Forecast tau (bonus included, micro) of draft structures, with 95 % intervals.

    Example: gumiho forecast model.json --lengths 1,2,3,5,7
    """
    from gumiho_simulator.costs.speed import verdicts, with_speed
    from gumiho_simulator.forecasting.fitting import FitResult
    from gumiho_simulator.forecasting.forecasts import forecast as forecast_structures
    from gumiho_simulator.forecasting.published import forecast_points, parse_points
    from gumiho_theory import CostProfile

    # Click gives an option one value; the further ones of `--structures A B C` arrive as arguments.
    if more and not structures:
        raise InputError("arguments", " ".join(more), "one model file; structures follow --structures")
    asked = [*(structures or []), *(more or [])]
    if (lengths is None) == (not asked):
        raise InputError("forecast", "both or neither", "either --lengths or --structures")
    if (model is None) == (tau_by_length is None):
        raise InputError("forecast", "both or neither", "either a model file or --tau-by-length")
    chains = [] if lengths is None else _lengths(lengths)
    costs = None if profile is None else CostProfile.read(profile)
    if model is not None:
        asked = asked or [f"chain:{length}" for length in chains]
        forecasts = forecast_structures(FitResult.read(model), asked)
    else:
        if asked:
            raise InputError("--structures", " ".join(asked), "--lengths, since points are for chains")
        forecasts = forecast_points(parse_points(tau_by_length or ""), chains)
    result = forecasts.to_json()
    if costs is not None:
        result = with_speed(forecasts, costs)
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import notes_of, show, table, text

    columns = ["structure", "tau", "95 %", "supported"] + ([] if costs is None else ["speedup", "95 %"])
    rows = []
    for one in result["forecasts"]:
        row = [one["structure"], one["tau"], text((one["lo"], one["hi"])), one["supported"]]
        rows.append(
            row if costs is None else [*row, text(one["speedup"], 2), text((one["speedup_lo"], one["speedup_hi"]), 2)]
        )
    said = [] if costs is None else verdicts(result)
    convention = "tau: bonus included, micro, over complete cycles; 95 % limits for a further measurement"
    show(table(columns, rows), convention, *notes_of(result["forecasts"]), *said)


def _one_number(place: str, text: str | None) -> Fraction:
    from gumiho_simulator.commands.numbers import parse_numbers

    numbers = parse_numbers(place, text or "")
    if len(numbers) != 1:
        raise InputError(place, f"{len(numbers)} numbers", "one time in milliseconds")
    return numbers[0]


def _lengths(text: str) -> list[int]:
    from gumiho_simulator.commands.numbers import parse_numbers

    numbers = parse_numbers("--lengths", text)
    for position, number in enumerate(numbers, start=1):
        if number.denominator != 1 or number > 512:
            raise InputError(f"--lengths, position {position}", str(number), "a whole number up to 512")
    return [int(number) for number in numbers]
