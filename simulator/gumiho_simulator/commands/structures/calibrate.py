"""`gumiho calibrate`: maps from draft to acceptance probability, for dynamic trees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_simulator.commands.shared.options import Json
from gumiho_simulator.commands.shared.output import present

if TYPE_CHECKING:
    from gumiho_simulator.calibrating import Calibrated


def calibrate(
    log: Annotated[Path, typer.Argument(help="Every-position log (Parquet) with the drafter's candidates.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Calibration file to write (JSON).")],
    kind: Annotated[str, typer.Option("--map", help="temperature or isotonic.")] = "temperature",
    figure: Annotated[
        Path | None, typer.Option(help="Also draw reliability diagrams here (.svg, .png or .pdf).")
    ] = None,
    json: Json = False,
) -> None:
    """Fit maps from draft to acceptance probability by depth, for dynamic trees: gumiho decode --calibration FILE.

    The errors are those of maps fitted to half of the prompts on the other half; the file's are fitted to all.

    Example: gumiho calibrate log.parquet -o calibration.json --figure reliability.svg
    """
    from gumiho_simulator.calibrating import calibrate as calibrate_log
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
    present(result, json, lambda: _tables(made, result["beta"], output))


def _tables(made: Calibrated, beta: list[float] | None, output: Path) -> Iterator[Any]:
    from gumiho_simulator.reports.tables import table, text

    rows, firsts = [], []
    for i, one in enumerate(made.depths):
        limits = text((one.after.lo, one.after.hi))
        rows.append([one.depth, one.n, one.before.error, one.after.error, limits, one.after.noise])
        rows[-1] += [] if beta is None else [beta[i]]
        firsts.append([one.depth, one.first_before.error, one.first_after.error, one.first_after.noise])
    columns = ("depth", "places", "draft", "mapped", "95 %", "noise", *(() if beta is None else ("beta",)))
    yield table(columns, rows, "error of all candidates' probabilities")
    yield table(("depth", "draft", "mapped", "noise"), firsts, "of first candidates alone: a chain's")
    yield (
        f"calibration error, in units of probability, on {made.holdout_prompts} held-out prompts: of the draft's own "
        "probabilities and of mapped ones; 95 %: of the mapped, without what chance adds, prompts resampled; noise: "
        "what no error at all would show"
    )
    yield from _verdict(made)
    yield f"{output}: fitted to all {made.fit_prompts + made.holdout_prompts} prompts"


def _verdict(made: Calibrated) -> Iterator[str]:
    """Say in words whether the maps are good, and whether they are better than none."""
    from gumiho_simulator.calibrating import GOOD

    far = [f"{one.depth} ({one.after.error:.3f})" for one in made.depths if one.after.error > GOOD]
    yield f"error of the mapped at most {GOOD:g} at every depth: {'no, not at ' + ', '.join(far) if far else 'yes'}"
    near = [one for one in made.depths if one.after.error <= GOOD]
    unsure = [str(one.depth) for one in near if one.after.hi is None or one.after.hi > GOOD]
    if unsure:
        yield f"with so few prompts that is not sure at depth {', '.join(unsure)}"
    worse = [str(one.depth) for one in made.depths if one.after.error > one.before.error]
    if worse:
        yield f"no better than the draft's own probabilities at depth {', '.join(worse)}"
