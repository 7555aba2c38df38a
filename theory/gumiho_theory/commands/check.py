"""``gumiho theorem check``: a change of rates, exactly, with its certificate; or a log and its verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumiho_theory.commands.printing import Json, print_json, print_table, show

if TYPE_CHECKING:
    from gumiho_theory.theorem.check import TheoremCheck


def check(
    trace: Annotated[
        Path | None, typer.Argument(help="Instead of rates: cycle trace (Parquet) or acceptance counts (.json).")
    ] = None,
    original: Annotated[
        str | None, typer.Option(help="Conditional rates of positions 1..D: decimals or fractions, comma-separated.")
    ] = None,
    improved: Annotated[
        str | None, typer.Option(help="The rates after: the early ones raised, the later ones lowered, same sum.")
    ] = None,
    early: Annotated[int | None, typer.Option(help="How many positions are early, 1..D-1.")] = None,
    json: Json = False,
) -> None:
    """Check the theorem on one change of rates, exactly: its hypothesis, the gain in E[L], a certificate of moves.

    Exit status 1 when the change loses.

    With a log: whether the hypothesis holds for its rates, how certainly, and which move would gain most.

    Example: gumiho theorem check --original 9/10,9/10,9/10 --improved 1,9/10,4/5 --early 1
    """
    from gumiho_theory.errors import InputError

    rates = {"--original": original, "--improved": improved, "--early": early}
    missing = [name for name, value in rates.items() if value is None]
    if trace is not None:
        if len(missing) < len(rates):
            raise InputError("check", "a log and rates", "either a log, or --original, --improved and --early")
        from gumiho_theory.theorem.verdicts import verdict

        show(verdict(trace).to_json(), json)
        return
    if original is None or improved is None or early is None:
        raise InputError("check", f"no {', '.join(missing)}", "a log, or --original, --improved and --early")

    from gumiho_theory.theorem.check import check_theorem

    try:
        done = check_theorem(original, improved, early)
    except InputError as error:
        # Its places are the function's arguments, named like the options.
        raise InputError(f"--{error.place}", error.found, error.wanted) from None
    if json:
        print_json(done.to_json())
    else:
        _print_check(done)
    if done.gain_exact is not None and done.gain_exact < 0:
        raise typer.Exit(1)


def _print_check(done: TheoremCheck) -> None:
    from gumiho_theory.theorem.exact import short

    typer.echo(f"hypothesis: {done.hypothesis or 'fails'}")
    for violation in done.violations:
        typer.echo(f"  {violation}")
    typer.echo(f"E[L] (no bonus token): {done.expected_original:.6g} -> {done.expected_improved:.6g}")
    # A long fraction tells a reader nothing; --json has it.
    legible = done.gain_exact is not None and done.gain_exact.denominator < 10**20
    typer.echo(f"gain: {done.gain:.6g}" + (f" = {done.gain_exact}\n" if legible else "\n"))
    made = done.certificate.moves
    rows = [(str(m.source), str(m.destination), short(m.amount), f"{float(m.gain):.6g}") for m in made]
    print_table(("from", "to", "amount", "gain"), rows)
    losing = len(done.certificate.harmful)
    outcome = "certified: no move loses" if done.certified else f"not certified: {losing} of {len(made)} moves lose"
    typer.echo(f"\n{outcome}")
