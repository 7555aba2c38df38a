"""The command `gumiho calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumiho_theory.json_output import dumps

if TYPE_CHECKING:
    from gumiho_simulator.calibrating.fitted import Calibrated


def calibrate(
    log: Annotated[Path, typer.Argument(help="Every-position log (Parquet) with the drafter's candidates.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Calibration file to write (JSON).")],
    kind: Annotated[str, typer.Option("--map", help="temperature or isotonic.")] = "temperature",
    figure: Annotated[
        Path | None, typer.Option(help="Also draw reliability diagrams here (.svg, .png or .pdf).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Fit maps from draft to acceptance probability by depth, for dynamic trees: gumiho decode --calibration FILE.

    The errors are those of maps fitted to half of the prompts on the other half; the file's are fitted to all.

    Example: gumiho calibrate log.parquet -o calibration.json --figure reliability.svg
    """
    from gumiho_simulator.calibrating.fitted import calibrate as calibrate_log
    from gumiho_simulator.figures.file import check_figure
    from gumiho_theory import EveryPositionLog
    from gumiho_theory.files import check_output

    check_output(output, [log])
    if figure is not None:
        check_figure(figure, [log, output])
    made = calibrate_log(EveryPositionLog.read(log), kind)
    made.calibration.write(output)
    if figure is not None:
        from gumiho_simulator.figures.reliability import write_reliability

        write_reliability(made, figure)
    result = {**made.to_json(), "output": str(output)}
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.reports.tables import show, table, text

    beta = result["beta"] is not None
    columns = ["depth", "places", "draft", "mapped", "95 %", "noise", *(["beta"] if beta else [])]
    first = ["depth", "draft", "mapped", "noise"]
    rows, firsts = [], []
    for i, one in enumerate(made.depths):
        limits = text((one.after.lo, one.after.hi))
        rows.append([one.depth, one.n, one.before.error, one.after.error, limits, one.after.noise])
        rows[-1] += [result["beta"][i]] if beta else []
        firsts.append([one.depth, one.first_before.error, one.first_after.error, one.first_after.noise])
    show(
        table(columns, rows, "error of all candidates' probabilities"),
        table(first, firsts, "of first candidates alone: a chain's"),
        f"calibration error, in units of probability, on {made.holdout_prompts} held-out prompts: of the draft's own "
        "probabilities and of mapped ones; 95 %: of the mapped, without what chance adds, prompts resampled; noise: "
        "what no error at all would show",
        *_verdict(made),
        f"{output}: fitted to all {made.fit_prompts + made.holdout_prompts} prompts",
    )


def _verdict(made: Calibrated) -> list[str]:
    """Say in words whether the maps are good, and whether they are better than none."""
    from gumiho_simulator.calibrating.fitted import GOOD

    far = [f"{one.depth} ({one.after.error:.3f})" for one in made.depths if one.after.error > GOOD]
    lines = [f"error of the mapped at most {GOOD:g} at every depth: {'no, not at ' + ', '.join(far) if far else 'yes'}"]
    near = [one for one in made.depths if one.after.error <= GOOD]
    unsure = [str(one.depth) for one in near if one.after.hi is None or one.after.hi > GOOD]
    lines += [f"with so few prompts that is not sure at depth {', '.join(unsure)}"] if unsure else []
    worse = [str(one.depth) for one in made.depths if one.after.error > one.before.error]
    lines += [f"no better than the draft's own probabilities at depth {', '.join(worse)}"] if worse else []
    return lines
