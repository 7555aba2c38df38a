"""``gumiho theorem``: check a change of rates, prove the theorem, sample it, break it where its hypothesis fails.

Everything but typer is imported inside the commands. Bad input raises InputError; the program that assembles the
commands turns it into one line on standard error and exit status 2.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gumiho_theory.logs.counts import AcceptanceCounts
    from gumiho_theory.logs.trace import Trace
    from gumiho_theory.theorem.check import TheoremCheck

theorem_app = typer.Typer(help="The early-token theorem: checked, proved, sampled, and broken where it may break.")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]


def register(app: typer.Typer) -> None:
    """Add ``theorem`` and its commands to an application."""
    app.add_typer(theorem_app, name="theorem")


@theorem_app.command()
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
        _check_log(trace, json)
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
        _print_json(done.to_json())
    else:
        _print_check(done)
    if done.gain_exact is not None and done.gain_exact < 0:
        raise typer.Exit(1)


@theorem_app.command()
def prove(
    max_depth: Annotated[int, typer.Option(min=2, help="Verify each D up to this one symbolically too.")] = 6,
    json: Json = False,
) -> None:
    """Prove the theorem with SymPy: the general obligations, then every D up to a depth.

    Exit status 1 when an obligation is not proved. With --json each one is exported, to be evaluated elsewhere.

    Example: gumiho theorem prove --max-depth 4
    """
    from gumiho_theory.theorem.proof.symbolic import prove as prove_theorem

    _announce(f"proving the general obligations and every D up to {max_depth}; D = 6 takes up to a minute")
    report = prove_theorem(max_depth)
    result = report.to_json()
    if json:
        _print_json(result)
    else:
        rows = [(one["name"], one["relation"], _text(one["proved"])) for one in result["obligations"]]
        _print_table(("obligation", "relation", "proved"), rows)
        typer.echo(f"\nproved: {_text(result['proved'])} ({len(rows)} obligations)")
    if not result["proved"]:
        raise typer.Exit(1)


@theorem_app.command()
def sample(
    depth: Annotated[int, typer.Option(min=2, help="Draft positions D.")] = 7,
    cases: Annotated[int, typer.Option(min=1, help="Random admissible cases.")] = 100_000,
    seed: Seed = 0,
    any_order: Annotated[bool, typer.Option("--any-order", help="Rates in any order: the hypothesis dropped.")] = False,
    json: Json = False,
) -> None:
    """Try the theorem on random admissible cases; every suspected loss is decided again in exact arithmetic.

    Example: gumiho theorem sample --depth 7 --cases 1000000 --seed 0
    """
    from gumiho_theory.theorem.montecarlo import sample_cases

    result = sample_cases(depth, cases, seed, any_order=any_order).to_json()
    _print(result, json)


@theorem_app.command()
def counterexample(
    depth: Annotated[int, typer.Option(min=1, help="Draft positions D.")] = 3,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Search for a change that loses when the rates may stand in any order.

    Exit status 1 when there is none: for D up to 2 none exists, which is proved.

    Example: gumiho theorem counterexample --depth 3 --seed 0
    """
    from gumiho_theory.theorem.boundary import counterexample as search

    found = search(depth, seed)
    nothing = {"found": False, "original": None, "improved": None, "early": None, "gain": None}
    _print(nothing if found is None else found.to_json(), json)
    if found is None:
        raise typer.Exit(1)


def _check_log(path: Path, json: bool) -> None:
    log = _read_log(path)
    from gumiho_theory.theorem.verdicts import verdict

    _print(verdict(log).to_json(), json)


def _read_log(path: Path) -> Trace | AcceptanceCounts:
    from gumiho_theory.errors import InputError
    from gumiho_theory.files import read_json
    from gumiho_theory.logs.counts import AcceptanceCounts
    from gumiho_theory.logs.trace import Trace

    if path.suffix.lower() != ".json":
        return Trace.read(path)
    data = read_json(path)
    try:
        return AcceptanceCounts.from_json(data)
    except InputError as error:
        raise error.within(path) from None


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
    _print_table(("from", "to", "amount", "gain"), rows)
    losing = len(done.certificate.harmful)
    outcome = "certified: no move loses" if done.certified else f"not certified: {losing} of {len(made)} moves lose"
    typer.echo(f"\n{outcome}")


def _print(result: Mapping[str, Any], json: bool) -> None:
    """Print a result as JSON, or as a table of names and values, with a table of its own for every list of rows."""
    if json:
        _print_json(result)
        return
    flat: list[tuple[str, str]] = []
    tables: list[tuple[str, list[Mapping[str, Any]]]] = []
    for name, value in result.items():
        if isinstance(value, Mapping):
            flat += [(f"{name}, {key}", _text(item)) for key, item in value.items()]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            tables.append((name, value))
        elif isinstance(value, list) and value and isinstance(value[0], str):
            flat += [("" if place else name, line) for place, line in enumerate(value)]
        else:
            flat.append((name, _text(value)))
    _print_table(("quantity", "value"), flat)
    for name, rows in tables:
        typer.echo(f"\n{name}")
        # A list within a row is for --json.
        keys = [key for key, value in rows[0].items() if not isinstance(value, list)]
        _print_table([_SHORT.get(key, key) for key in keys], [[_text(row[key], 4) for key in keys] for row in rows])


# Headings of tables that have to fit into 80 columns.
_SHORT = {
    "next_rate": "next",
    "next_worth": "next",
    "falls_probability": "prob.",
    "earlier_worth_more": "earlier more",
    "earlier_worth_more_probability": "prob.",
}


def _print_json(result: Mapping[str, Any]) -> None:
    from gumiho_theory.files import dumps_json

    typer.echo(dumps_json("result", result))


def _print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [list(headings), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    # The last column may be long text: it goes on below itself.
    room = max(shutil.get_terminal_size().columns - before, 20)
    for line in lines:
        texts = textwrap.wrap(line[-1], room, break_long_words=False, break_on_hyphens=False) or [""]
        cells = [cell.ljust(width) for cell, width in zip(line[:-1], widths[:-1], strict=True)]
        typer.echo("  ".join([*cells, texts[0]]).rstrip())
        for more in texts[1:]:
            typer.echo(" " * before + more)


def _text(value: Any, digits: int = 6) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    return str(value)


def _announce(line: str) -> None:
    """Say on standard error what takes long, to a person who watches."""
    if sys.stderr.isatty():
        typer.echo(line, err=True)
