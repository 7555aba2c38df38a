"""The head allocations of a sweep side by side: tau, the change against one of them, rates by position, draft times.

Run: python benchmarks/allocation.py traces/sweep/greedy [traces/sweep/t1] [--base serial2] [--figure FILE]. One row a
trace: tau with its 95 % interval, the difference from the base paired by prompt, conditional rates, and the median time
of drafting (of real runs). A table a folder on stdout, in Markdown; with --json one JSON object.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from gumiho_simulator.figure_file import check_figure, write_figure
from gumiho_simulator.intervals import tau_interval
from gumiho_simulator.plots import BLUE
from gumiho_simulator.sample_size import compare
from gumiho_theory import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        rates=tuple(round(rate, 3) for rate in counts.conditional().tolist()),
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


def draw(groups: dict[str, list[Row]], figure: Figure) -> None:
    """Draw tau by allocation, with intervals: a panel a folder."""
    axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for ax, (title, rows) in zip(axes, groups.items(), strict=True):
        upwards = rows[::-1]
        tau = np.array([row.tau for row in upwards])
        low, high = np.array([row.tau_interval for row in upwards]).T
        ax.errorbar(tau, range(len(rows)), xerr=[tau - low, high - tau], fmt="o", color=BLUE, capsize=2.5, ms=4.5)
        names = [f"{row.name}: {row.shape[0]} serial + {row.shape[2]} parallel" for row in upwards]
        ax.set_yticks(range(len(rows)), names)
        ax.grid(axis="x")
        ax.set_title(f"{title}, {rows[0].prompts} prompts", fontsize=10.5)
    figure.supxlabel("tau of the whole chain (bonus included, micro; 95 % over prompts)", fontsize=10.5)


def main(
    folders: Annotated[list[Path], typer.Argument(help="Folders of cycle traces, one an allocation.")],
    base: str = "serial2",
    figure: Annotated[Path | None, typer.Option(help="Draw tau here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Sum the sweep up."""
    if figure is not None:
        check_figure(figure)
    groups = {}
    for folder in folders:
        traces = {path.stem: Trace.read(path) for path in sorted(folder.glob("*.parquet"))}
        if base not in traces:
            raise typer.BadParameter(
                f"{folder}: found {', '.join(traces) or 'no trace'}, wanted {base}.parquet among them"
            )
        groups[folder.name] = [row_of(name, trace, traces[base]) for name, trace in traces.items()]
    if figure is not None:
        size = (2.6 + 2.6 * len(groups), 0.27 * max(map(len, groups.values())) + 1.1)
        write_figure(figure, size, lambda drawn: draw(groups, drawn))
    if as_json:
        print(json.dumps({name: [asdict(row) for row in rows] for name, rows in groups.items()}))
    else:
        print("\n\n".join(markdown(rows, base) for rows in groups.values()))


if __name__ == "__main__":
    typer.run(main)
