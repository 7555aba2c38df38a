"""`gumiho theorem` called as its user calls it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from gumiho_theory import InputError
from gumiho_theory.commands import register

app = typer.Typer()
register(app)

LOSS = ("--original", "0.81,0.16,0.99", "--improved", "0.97,0.00,0.99", "--early", "1")
GAIN = ("--original", "9/10,9/10,9/10", "--improved", "1,9/10,4/5", "--early", "1")


def run(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["theorem", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result.stdout


def run_json(*arguments: object, status: int = 0) -> dict[str, Any]:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} in JSON")

    printed = run(*arguments, "--json", status=status)
    assert printed.count("\n") == 1
    value = json.loads(printed, parse_constant=refuse)
    assert isinstance(value, dict)
    return value


def refused(*arguments: object) -> str:
    with pytest.raises(InputError) as raised:
        CliRunner().invoke(app, ["theorem", *map(str, arguments)], catch_exceptions=False)
    return str(raised.value)
