"""The head allocations of a sweep side by side: tau, the change against one of them, rates by position, draft times.

Run: python benchmarks/allocation.py traces/sweep/greedy [traces/apart/greedy …] [--base NAME …] [--figure FILE]. One
row a trace: tau with its 95 % interval, the difference from the base (the first that the folder has) paired by prompt,
conditional rates, and the median time of drafting (of real runs). A table a folder on stdout, in Markdown; with --json
one JSON object. The figure has a panel for each name of a folder, and a colour for each name of what that is in.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from gumiho_simulator.figures.axes import BLUE, GREEN, GREY, ORANGE
from gumiho_simulator.figures.file import check_figure, write_figure
from gumiho_simulator.forecasting.intervals import tau_interval
from gumiho_simulator.forecasting.sample_size import compare
from gumiho_theory import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "D"), (GREY, "^"))
SHAPE = ("serial_steps", "serial_layers", "parallel_heads", "head_blocks")


@dataclass(frozen=True)
class Row:
    """One allocation. tau: bonus included, micro, complete cycles."""

    name: str
    shape: tuple[int, ...]
    prompts: int
    cycles: int
    tau: float
    tau_interval: tuple[float, float]
    change: float
    change_interval: tuple[float, float]
    rates: tuple[float, ...]
    draft_ms: float


def row_of(name: str, trace: Trace, base: Trace) -> Row:
    """Sum up one trace."""
    counts = trace.counts_by_prompt()
    found = compare(base.counts_by_prompt(), counts)
    shape = trace.provenance["drafter_shape"] or {}
    return Row(
        name=name,
        shape=tuple(shape.get(key, 0) for key in SHAPE),
        prompts=len(trace.prompts),
        cycles=trace.n_cycles,
        tau=counts.tau(),
        tau_interval=tau_interval(counts, np.random.default_rng(0)),
        change=found.difference,
        change_interval=(found.lo, found.hi),
        rates=tuple(counts.conditional().tolist()),
        draft_ms=1000 * float(np.median(trace.draft_seconds)),  # nan of cycles that were replayed
    )


def markdown(rows: list[Row], base: str) -> str:
    """Return the table."""
    head = ("allocation", "serial", "layers", "parallel", "blocks", "prompts", "tau", f"against {base}")
    head += ("rates 1, 2, …", "draft ms")
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        low, high = row.tau_interval
        least, most = row.change_interval
        change = "–" if row.name == base else f"{row.change:+.3f} [{least:+.3f}, {most:+.3f}]"
        rates = " ".join("–" if math.isnan(rate) else f"{rate:.2f}".lstrip("0") for rate in row.rates)
        shape = " | ".join(map(str, row.shape))
        lines.append(
            f"| {row.name} | {shape} | {row.prompts} | {row.tau:.3f} [{low:.3f}, {high:.3f}] | {change} | {rates} "
            f"| {'–' if math.isnan(row.draft_ms) else f'{row.draft_ms:.2f}'} |"
        )
    return "\n".join(lines)


def label(shape: tuple[int, ...], usual: tuple[int, ...]) -> str:
    """Return an allocation in words: its positions, and what else is not as usual."""
    serial, layers, parallel, blocks = shape
    text = f"{serial} serial + {parallel} parallel"
    if layers != usual[1]:
        text += f", {layers} {'layer' if layers == 1 else 'layers'}"
    if blocks != usual[3] and parallel:
        text += f", {blocks} {'block' if blocks == 1 else 'blocks'}"
    return text


def draw(groups: dict[Path, list[Row]], usual: tuple[int, ...], figure: Figure) -> None:
    """Draw tau by allocation, with intervals."""
    panels = list(dict.fromkeys(folder.name for folder in groups))
    ways = list(dict.fromkeys(folder.parent.name for folder in groups))
    shapes = list({row.shape for rows in groups.values() for row in rows})
    # By what is not as usual, then by positions: layers, blocks, length of the chain.
    shapes.sort(key=lambda at: (at[1] != usual[1], at[3] != usual[3], at[0] + at[2] != usual[0] + usual[2], at))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for folder, rows in groups.items():
        ax, way = axes[panels.index(folder.name)], ways.index(folder.parent.name)
        height = [-shapes.index(row.shape) - 0.24 * (way - (len(ways) - 1) / 2) for row in rows]
        tau = np.array([row.tau for row in rows])
        low, high = np.array([row.tau_interval for row in rows]).T
        colour, marker = SERIES[way % len(SERIES)]
        ax.errorbar(
            tau,
            height,
            xerr=[tau - low, high - tau],
            fmt=marker,
            color=colour,
            capsize=2.5,
            ms=4.5,
            label=folder.parent.name,
        )
        ax.set_title(f"{folder.name}, {rows[0].prompts} prompts", fontsize=10.5)
    axes[0].set_yticks([-place for place in range(len(shapes))], [label(shape, usual) for shape in shapes])
    for ax in axes:
        ax.grid(axis="x")
    if len(ways) > 1:
        drawn = axes[0].get_legend_handles_labels()
        figure.legend(*drawn, loc="upper left", ncols=2, frameon=False, fontsize=9.5, columnspacing=1.0)
    figure.supxlabel("tau of the whole chain (bonus included, micro; 95 % over prompts)", fontsize=10.5)


def main(
    folders: Annotated[list[Path], typer.Argument(help="Folders of cycle traces, one an allocation.")],
    base: Annotated[list[str] | None, typer.Option(help="Names to compare with; of a folder the first it has.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw tau here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Sum the sweep up."""
    if figure is not None:
        check_figure(figure)
    base = base or ["serial2", "apart2"]
    groups, bases = {}, {}
    for folder in folders:
        traces = {path.stem: Trace.read(path) for path in sorted(folder.glob("*.parquet"))}
        bases[folder] = next((name for name in base if name in traces), "")
        if not bases[folder]:
            raise typer.BadParameter(
                f"{folder}: found {', '.join(traces) or 'no trace'}, wanted one of {', '.join(base)} among them"
            )
        groups[folder] = [row_of(name, trace, traces[bases[folder]]) for name, trace in traces.items()]
    if figure is not None:
        panels = len({folder.name for folder in folders})
        shapes = len({row.shape for rows in groups.values() for row in rows})
        usual = next(row.shape for row in groups[folders[0]] if row.name == bases[folders[0]])
        write_figure(figure, (2.6 + 2.6 * panels, 0.3 * shapes + 1.1), lambda drawn: draw(groups, usual, drawn))
    if as_json:
        print(json.dumps({str(folder): [asdict(row) for row in rows] for folder, rows in groups.items()}))
    else:
        named = len(groups) > 1
        print("\n\n".join(f"{folder}\n\n" * named + markdown(rows, bases[folder]) for folder, rows in groups.items()))


if __name__ == "__main__":
    typer.run(main)
