"""tau against the tokens that a drafter has been trained on, from logged traces.

Run: python benchmarks/tokens.py traces/family/tokens [--figure FILE]. The folder holds one of each drafter, with
step-N.parquet for the weights after N steps of `--tokens-per-step` tokens. A table on stdout, in Markdown; tau counts
the bonus token, is micro, of complete cycles, with a 95 % interval over prompts.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from gumiho_simulator.figures.file import check_figure, write_figure
from gumiho_simulator.forecasting.intervals import tau_interval
from gumiho_theory import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = list[tuple[int, float, float, float]]  # tokens, tau, its limits


def curve(folder: Path, tokens_per_step: int) -> Curve:
    """Return a drafter's curve, by tokens."""
    points = []
    for path in folder.glob("step-*.parquet"):
        counts = Trace.read(path).counts_by_prompt()
        low, high = tau_interval(counts, np.random.default_rng(0))
        points.append((int(path.stem.partition("-")[2]) * tokens_per_step, counts.tau(), low, high))
    return sorted(points)


def markdown(curves: dict[str, Curve]) -> str:
    """Return the table: a row for each number of tokens."""
    lines = [f"| million tokens | {' | '.join(curves)} |", "|" + "---|" * (len(curves) + 1)]
    cells = {name: {at: f"{tau:.3f} [{low:.3f}, {high:.3f}]" for at, tau, low, high in c} for name, c in curves.items()}
    for at in sorted({at for row in cells.values() for at in row}):
        lines.append(f"| {at / 1e6:.2f} | {' | '.join(row.get(at, '–') for row in cells.values())} |")
    return "\n".join(lines)


def draw(curves: dict[str, Curve], figure: Figure) -> None:
    """Draw the curves, with intervals."""
    import seaborn

    ax = figure.subplots()
    colours = seaborn.color_palette("colorblind", len(curves))
    for (name, points), colour, marker in zip(curves.items(), colours, itertools.cycle("osD^vP")):
        at, tau, low, high = np.array(points).T
        ax.errorbar(at / 1e6, tau, yerr=[tau - low, high - tau], fmt=f"{marker}-", color=colour, capsize=2.5, ms=5)
        ax.annotate(name, (at[-1] / 1e6, tau[-1]), xytext=(8, 0), textcoords="offset points", color=colour, va="center")
    ax.set(xscale="log", xlabel="tokens seen in training, millions", ylabel="tau (bonus included, micro)")
    ticks = sorted({round(at / 1e6, 2) for points in curves.values() for at, *_ in points})
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    ax.set_xticks([], minor=True)
    ax.margins(x=0.12)


def main(
    folder: Annotated[Path, typer.Argument(help="A folder a drafter, of traces step-N.parquet.")],
    tokens_per_step: int = 2048,
    figure: Annotated[Path | None, typer.Option(help="Draw the curves here: .svg, .png or .pdf.")] = None,
) -> None:
    """Show how far training has come."""
    if figure is not None:
        check_figure(figure)
    folders = sorted(folder.iterdir()) if folder.is_dir() else []
    found = {path.name: points for path in folders if (points := curve(path, tokens_per_step))}
    if not found:
        raise typer.BadParameter(f"{folder}: found no step-N.parquet in its folders, wanted some")
    curves = dict(sorted(found.items(), key=lambda pair: -pair[1][-1][1]))
    print(markdown(curves))
    if figure is not None:
        write_figure(figure, (6.4, 3.8), lambda drawn: draw(curves, drawn))


if __name__ == "__main__":
    typer.run(main)
