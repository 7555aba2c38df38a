"""``gumiho theorem`` put together from its four commands.

Everything but typer is imported inside the commands. Bad input raises InputError; the program that assembles the
commands turns it into one line on standard error and exit status 2.
"""

from __future__ import annotations

import typer

from gumiho_theory.commands.check import check
from gumiho_theory.commands.counterexample import counterexample
from gumiho_theory.commands.prove import prove
from gumiho_theory.commands.sample import sample


def register(app: typer.Typer) -> None:
    """Add ``theorem`` and its commands to an application."""
    theorem = typer.Typer(help="The early-token theorem: checked, proved, sampled, and broken where it may break.")
    for command in (check, prove, sample, counterexample):
        theorem.command()(command)
    app.add_typer(theorem, name="theorem")
