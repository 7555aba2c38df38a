"""The commands that weigh draft heads: allocate, compare, roofline, cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_theory import InputError
from gumiho_theory.json_output import dumps

if TYPE_CHECKING:
    from gumiho_simulator.costs.step_time import StepTime

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def allocate(
    profile: Annotated[
        Path,
        typer.Option(help="Cost profile (JSON) from gumiho profile, roofline or cost; or a folder, one a drafter."),
    ],
    traces: Annotated[Path, typer.Option(help="Folder of cycle traces (Parquet), one an allocation.")],
    figure: Annotated[Path | None, typer.Option(help="Draw tau against cycle time here (.svg, .png, .pdf).")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    json: Json = False,
) -> None:
    """Find the fastest allocation of serial and parallel heads among logged ones, under a cost profile.

    Example: gumiho allocate --profile profile.json --traces runs/allocations
    """
    from gumiho_simulator.allocating.files import read_profiles, read_traces
    from gumiho_simulator.allocating.logged import allocate_traces
    from gumiho_simulator.figures.file import check_figure, write_figure

    if figure is not None:
        check_figure(figure)
    logs, unread = read_traces(traces)
    found = allocate_traces(read_profiles(profile), logs, seed)
    result = found.to_json()
    result["warnings"] = [*unread, *found.warnings]
    if figure is not None:
        from gumiho_simulator.figures.allocations import plot_front

        write_figure(figure, (6.4, 4.4), lambda made: plot_front(found, made.subplots()))
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table, text

    columns = ("trace", "heads", "tau", "95 %", "ms", "speedup", "95 %", "front")
    rows = [
        [
            Path(row.source or "").stem,
            row.heads,
            text(row.tau, 2),
            text((row.lo, row.hi), 2),
            text(1000 * row.cycle_seconds, 2),
            text(row.speedup, 2),
            text((row.speedup_lo, row.speedup_hi), 2),
            "yes" if row in found.front else "",
        ]
        for row in sorted(found.rows, key=lambda row: -row.speedup)
    ]
    lines = [f"best: {found.best}, {found.best.speedup:.3f}x plain decoding"]
    if found.regret is not None and found.best_probability is not None:
        loss = f"expected loss by choosing it {found.regret:.4f}x"
        lines.append(f"fastest in {found.best_probability:.0%} of resamples of {found.prompts} prompts; {loss}")
    notes = [f"assumed: {one}" for one in found.assumptions] + [f"warning: {one}" for one in result["warnings"]]
    heads = "heads: serial steps x layers of each + parallel heads"
    show(table(columns, rows), *lines, heads, result["convention"], *notes)


def compare(
    a: Annotated[Path, typer.Argument(help="Log A: any that `traces show` reads.")],
    b: Annotated[Path, typer.Argument(help="Log B.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    json: Json = False,
) -> None:
    """Tell whether tau of two logs differs, paired by prompt, and how many prompts it takes to tell.

    Example: gumiho compare a.parquet b.parquet
    """
    from gumiho_simulator.commands.import_logs import warnings_as_lines
    from gumiho_simulator.forecasting.sample_size import compare as compare_logs
    from gumiho_simulator.forecasting.summary import read_log

    with warnings_as_lines():
        first, second = read_log(a), read_log(b)
    found = compare_logs(first, second, seed)
    result = found.to_json()
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table

    what = found.clusters
    sizes = found.prompts_a if found.paired else f"{found.prompts_a} and {found.prompts_b}"
    limits = f"{found.prompts_needed_lo or '–'} to {found.prompts_needed_hi or 'any number'}"
    interval = (found.lo, found.hi)
    pairs = [("tau A", found.tau_a), ("tau B", found.tau_b), ("B - A", found.difference), ("95 %", interval)]
    pairs += [("different", found.different), (what, sizes), ("paired", found.paired)]
    pairs += [(f"{what} left out", found.dropped), (f"{what} needed", found.prompts_needed), ("needed, 95 %", limits)]
    meant = f"needed: {what} of each log that tell such a difference from 0 {found.power:.0%} of the time"
    convention = result["tau_convention"].replace("prompts", what)
    show(table(("quantity", "value"), pairs), convention, f"{meant}; its limits are those of B - A")


def roofline(
    shape: Annotated[str, typer.Option(help="Target: vicuna-7b, llama3-8b, … or a config.json.")],
    method: Annotated[str, typer.Option(help="gumiho, eagle, medusa, hydra or draft-model.")],
    accelerator: Annotated[str, typer.Option(help="MI250, A100, H100, H200 or RTX 4090.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Cost profile to write (JSON).")],
    batch: Annotated[int, typer.Option(help="Sequences decoded together.")] = 1,
    context: Annotated[int, typer.Option(help="Tokens of each before the step.")] = 512,
    weight_bytes: Annotated[float, typer.Option(help="Bytes of a weight: 2 for 16 bits, 0.5 for 4.")] = 2.0,
    draft_shape: Annotated[str | None, typer.Option(help="The smaller model, for draft-model.")] = None,
    serial_steps: Annotated[int, typer.Option(help="Gumiho: serial steps.")] = 2,
    serial_layers: Annotated[int, typer.Option(help="Gumiho: layers of a serial step.")] = 2,
    parallel_heads: Annotated[int, typer.Option(help="Gumiho: parallel heads.")] = 5,
    heads: Annotated[int, typer.Option(help="Medusa and Hydra: heads.")] = 5,
    json: Json = False,
) -> None:
    """Estimate a cost profile from a model's shape and an accelerator's data sheet, without running anything.

    Example: gumiho roofline --shape vicuna-7b --method gumiho --accelerator H100 -o profile.json
    """
    from gumiho_simulator.costs.accelerators import accelerator as named
    from gumiho_simulator.costs.roofline import Setting, roofline_profile
    from gumiho_simulator.costs.shapes import model_shape
    from gumiho_theory.files import check_output

    check_output(output, [name for name in (shape, draft_shape) if name is not None and os.path.isfile(name)])
    device = named(accelerator)
    made = roofline_profile(
        model_shape(shape, weight_bytes),
        method,
        Setting(device, batch, context),
        draft_shape=None if draft_shape is None else model_shape(draft_shape, weight_bytes),
        serial_steps=serial_steps,
        serial_layers=serial_layers,
        parallel_heads=parallel_heads,
        heads=heads,
    )
    made.write(output)
    result = {**made.to_json(), "source": device.source, "output": str(output)}
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table

    rows: list[tuple[str, Any]] = [("plain step", 1000 * made.baseline_seconds)]
    rows += [("serial draft step", 1000 * made.draft_serial_seconds)]
    rows += [("parallel heads, once", 1000 * made.draft_parallel_seconds), ("rest", 1000 * made.other_seconds)]
    sizes = zip(made.verify_nodes, made.verify_seconds, strict=True)
    rows += [(f"verification of {nodes} nodes", 1000 * seconds) for nodes, seconds in sizes]
    title = f"{made.target}, {made.drafter}, {made.device}"
    show(table(("step", "ms, estimated"), rows, title), f"rates: {device.source}", str(output))


def cost(
    files: Annotated[
        list[Path], typer.Argument(help="Cycle traces (Parquet) of one drafter, or one cost profile (.json).")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Cost profile to write (JSON).")] = None,
    baseline_ms: Annotated[
        float | None, typer.Option(help="One step of plain decoding, for the profile: no trace holds it.")
    ] = None,
    json: Json = False,
) -> None:
    """Fit what a cycle costs to logged times; a line or a stair, as predicts left-out lengths better.

    Example: gumiho cost chain1.parquet chain3.parquet chain7.parquet --baseline-ms 38.2 -o profile.json
    """
    if (output is None) != (baseline_ms is None):
        raise InputError("options", "one of -o and --baseline-ms", "both or neither")
    from gumiho_theory.files import check_output

    if output is not None:
        check_output(output, files)
    profiles = [path for path in files if path.suffix.lower() == ".json"]
    if profiles:
        if len(files) > 1 or output is not None:
            raise InputError("files", f"{len(files)} with a profile among them", "one profile alone, and no -o")
        result = _profile_cost(profiles[0])
    else:
        result = _trace_cost(files, output, baseline_ms)
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table

    rows = [(key, value) for key, value in result.items() if key != "errors"]
    columns = ("kind", "mean", "rms", "worst", "sizes")
    errors = [[one[column] for column in columns] for one in result["errors"]]
    shown: list[Any] = [table(("quantity", "value"), rows)]
    if errors:
        shown.append(table(columns, errors, "relative error, each size left out in turn"))
    show(*shown)


def _profile_cost(path: Path) -> dict[str, Any]:
    from gumiho_simulator.costs.step_time import fit_step_time
    from gumiho_theory import CostProfile

    profile = CostProfile.read(path)
    try:
        fitted = fit_step_time(profile.verify_nodes, profile.verify_seconds)
    except InputError as error:
        raise error.within(path) from None
    return {**_verification(fitted.time), "errors": [vars(one) for one in fitted.errors]}


def _trace_cost(files: list[Path], output: Path | None, baseline_ms: float | None) -> dict[str, Any]:
    from gumiho_simulator.costs.cycle import fit_cycle_cost
    from gumiho_theory import Trace

    traces = [Trace.read(path) for path in files]
    fitted = fit_cycle_cost(traces)
    result = {
        **_verification(fitted.verify),
        "serial_steps": fitted.serial_steps,
        "serial_ms": 1000 * fitted.serial,
        "parallel_ms": 1000 * fitted.parallel,
        "draft_fixed_ms": 1000 * fitted.draft_fixed,
        "other_ms": 1000 * fitted.other,
        "errors": [vars(one) for one in fitted.errors],
    }
    if output is not None and baseline_ms is not None:
        facts = [str(traces[0].provenance.get(key)) for key in ("target", "drafter", "device", "dtype")]
        fitted.to_profile(baseline_ms / 1000, *facts).write(output)
        result["output"] = str(output)
    return result


def _verification(time: StepTime) -> dict[str, Any]:
    return {
        "kind": time.kind,
        "width": time.width,
        "verify_fixed_ms": 1000 * time.fixed,
        "verify_first_ms": 1000 * time.first,
        "verify_each_ms": 1000 * time.each,
        "verify_context_ms": 1000 * time.context_each,
    }
