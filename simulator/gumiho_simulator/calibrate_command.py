"""The command `gumiho calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gumiho_simulator.json_output import dumps


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
    from gumiho_simulator.calibrate import calibrate as calibrate_log
    from gumiho_theory import EveryPositionLog

    made = calibrate_log(EveryPositionLog.read(log), kind)
    made.calibration.write(output)
    if figure is not None:
        from gumiho_simulator.calibration_plot import write_reliability

        write_reliability(made, figure)
    result = {**made.to_json(), "output": str(output)}
    if json:
        typer.echo(dumps(result))
        return

    from gumiho_simulator.tables import show, table

    columns = ["n", "error_before", "error_after", "noise", "first_before", "first_after", "first_noise"]
    columns += ["beta"] if result["beta"] is not None else []
    rows = [[one.depth, *(result[column][i] for column in columns)] for i, one in enumerate(made.depths)]
    show(
        table(["depth", *columns], rows),
        f"calibration error on {made.holdout_prompts} held-out prompts, of all candidates and of first ones alone; "
        "noise: what no error at all would show there",
        f"{output}: fitted to all {made.fit_prompts + made.holdout_prompts} prompts",
    )
