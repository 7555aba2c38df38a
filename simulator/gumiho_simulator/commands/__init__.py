"""The simulator's commands, one file a command: it parses, calls one public function, and shows its result.

Whatever is heavy is imported inside a command, so that ``gumiho --help`` and ``gumiho predict`` start without SciPy or
pyarrow. Bad input raises InputError; the program that assembles the commands makes it one line on standard error and
exit status 2.
"""

from __future__ import annotations

import typer

from gumiho_simulator.commands.costs.allocate import allocate
from gumiho_simulator.commands.costs.cost import cost
from gumiho_simulator.commands.costs.roofline import roofline
from gumiho_simulator.commands.forecasts.fit import fit
from gumiho_simulator.commands.forecasts.forecast import forecast
from gumiho_simulator.commands.forecasts.predict import predict
from gumiho_simulator.commands.forecasts.sweep import sweep
from gumiho_simulator.commands.forecasts.validate import validate
from gumiho_simulator.commands.logs.compare import compare
from gumiho_simulator.commands.logs.import_logs import import_logs
from gumiho_simulator.commands.logs.show import show
from gumiho_simulator.commands.structures.calibrate import calibrate
from gumiho_simulator.commands.structures.importance import importance
from gumiho_simulator.commands.structures.replay import replay
from gumiho_simulator.commands.structures.tree import tree

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the simulator's commands to an application.

    Parameters
    ----------
    app
        The application to add to.
    """
    forecasting = (predict, tree, fit, forecast, validate)
    weighing = (importance, replay, calibrate, allocate, compare, cost, roofline, sweep)
    for command in (*forecasting, *weighing):
        app.command(command.__name__)(command)
    traces = typer.Typer(help="Look at logged traces, and read the logs of others.")
    traces.command("import")(import_logs)
    traces.command("show")(show)
    app.add_typer(traces, name="traces")
