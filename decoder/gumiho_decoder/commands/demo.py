"""`gumiho demo`: the main job on the embedded models, shown as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gumiho_decoder.commands.options import Json, print_json

if TYPE_CHECKING:
    from gumiho_decoder.commands.demonstration import DemoResult


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report.")] = Path("gumiho-demo"),
    as_json: Json = False,
) -> None:
    """Run the main job on the embedded models: decode, check, log, fit on half of the prompts, forecast the others.

    Example: gumiho demo -o report
    """
    from gumiho_decoder.commands.demonstration import run_demo

    result = run_demo(output)
    if as_json:
        print_json(result.to_json())
    else:
        _show(result)
    if result.different:
        raise typer.Exit(1)


def _show(result: DemoResult) -> None:
    from gumiho_simulator.reports.tables import show, table, text

    facts, summary, validation = result.facts, result.summary, result.validation
    keys = ("at_risk", "conditional", "conditional_ci", "survival", "survival_ci")
    positions = [[i + 1, *(text(facts[key][i], 2) for key in keys)] for i in range(len(facts["conditional"]))]
    forecasts = [
        (f"{row.model}: {text(row.predicted)}", text([row.lo, row.hi]), row.measured, row.relative_error, row.inside)
        for row in validation.rows
    ]
    held_out = f"tau of {len(validation.holdout_prompts)} held-out prompts"

    def faster(than: str) -> str:
        ratio, limits = (getattr(summary, f"speedup_{than}{end}") for end in ("", "_ci"))
        return f"{text(ratio, 2)}x {text(limits, 2)}"

    times = (facts["draft_ms"], facts["verify_ms"], summary.plain_step_ms)
    numbers = [
        ("tau, all prompts (95 %)", f"{text(summary.tau)} {text(summary.tau_ci)}"),
        ("tau, cycles from the first 32 tokens", text(summary.tau_first_32)),
        (
            "speedup over the plain loop (95 %)",
            f"{text(summary.speedup_plain, 2)}x {text(summary.speedup_plain_ci, 2)}",
        ),
        (
            "speedup over transformers' generate (95 %)",
            f"{text(summary.speedup_generate, 2)}x {text(summary.speedup_generate_ci, 2)}",
        ),
        ("draft, verify a cycle; plain step", ", ".join(f"{text(t, 2)} ms" for t in times)),
        ("share of repeated 4-grams", text(summary.repeated_4gram_share, 2)),
    ]
    checked = summary.lossless
    show(
        f"{checked['equal']} of {checked['checked']} prompts equal plain greedy decoding, token for token"
        f" ({checked['ties']} near-ties, {checked['different']} different)",
        *(f"near-tie: prompt {t.prompt_id}, token {t.position}, gap {t.gap:.2g}" for t in summary.near_ties),
        table(("position", "at risk", "conditional", "95 %", "survival", "95 %"), positions),
        table((held_out, "95 %", "measured", "error", "inside"), forecasts),
        table(("quantity", "value"), numbers),
        "tau: bonus included, micro, complete cycles; intervals clustered by prompt",
        *([summary.busy] if summary.busy else []),
        f"report: {result.report}",
    )
