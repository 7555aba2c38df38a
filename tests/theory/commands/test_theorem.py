"""All four commands of `gumiho theorem`: their help and their usage errors."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from theorem_commands import app, run


@pytest.mark.parametrize("command", ["check", "prove", "sample", "counterexample"])
def test_every_help_has_an_example(command: str) -> None:
    assert f"Example: gumiho theorem {command}" in " ".join(run(command, "--help").split())


@pytest.mark.parametrize(
    "arguments", [("sample", "--depth", "1"), ("sample", "--cases", "0"), ("prove", "--max-depth", "1")]
)
def test_numbers_out_of_range_are_usage_errors(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, ["theorem", *arguments]).exit_code == 2
