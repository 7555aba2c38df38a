"""The simulator's commands run in this process: their result, their text, their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from gumiho_simulator.commands import register


@pytest.fixture(scope="session")
def invoke() -> Callable[..., Result]:
    """Return the function that runs a command, which must end well; what it raises comes through."""
    app = typer.Typer()
    register(app)

    def invoke(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result

    return invoke


@pytest.fixture(scope="session")
def run(invoke: Callable[..., Result]) -> Callable[..., str]:
    """Return the function that runs a command and returns what it printed."""
    return lambda *arguments: invoke(*arguments).stdout


@pytest.fixture(scope="session")
def run_json(run: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    """Return the function that runs a command with --json and returns the object, whose numbers are finite."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} in JSON")

    def run_json(*arguments: object) -> dict[str, Any]:
        value = json.loads(run(*arguments, "--json"), parse_constant=refuse)
        assert isinstance(value, dict)
        return value

    return run_json
