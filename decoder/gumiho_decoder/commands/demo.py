"""The command `gumiho demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gumiho_decoder.commands.options import Json

if TYPE_CHECKING:
    from gumiho_decoder.commands.main_job import DemoResult
    from gumiho_simulator import DemoSummary


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report.")] = Path("gumiho-demo"),
    as_json: Json = False,
) -> None:
    """Run the main job on the embedded models: decode, check, log, fit on half of the prompts, forecast the others.

    Example: gumiho demo -o report
    """
    from gumiho_decoder.commands.main_job import run_demo
    from gumiho_theory.json_output import dumps

    made = run_demo(output)
    if as_json:
        typer.echo(dumps(made.to_json()))
    else:
        _show(made)
    if made.summary.lossless["different"]:
        raise typer.Exit(1)


def _show(made: DemoResult) -> None:
    from gumiho_decoder.commands.main_job import EARLY_TOKENS
    from gumiho_simulator.reports.tables import show, table, text

    result, facts, validation, summary = made.to_json(), made.facts, made.validation, made.summary
    keys = ("at_risk", "conditional", "conditional_ci", "survival", "survival_ci")
    positions = [[i + 1, *(text(facts[key][i], 2) for key in keys)] for i in range(len(facts["conditional"]))]
    checked = result["lossless"]
    lines = [
        f"{checked['equal']} of {checked['checked']} prompts equal plain greedy decoding, token for token"
        f" ({checked['ties']} near-ties, {checked['different']} different)",
        *(f"near-tie: prompt {t.prompt_id}, token {t.position}, gap {t.gap:.2g}" for t in summary.near_ties),
    ]
    predicted = [
        (f"tau of {len(validation.holdout_prompts)} held-out prompts", "95 %", "measured", "error", "inside"),
        *(
            (
                f"{row.model}: {text(row.predicted)}",
                text([row.lo, row.hi]),
                row.measured,
                row.relative_error,
                row.inside,
            )
            for row in validation.rows
        ),
    ]
    numbers = [
        ("tau, all prompts (95 %)", f"{text(result['tau'])} {text(result['tau_ci'])}"),
        (f"tau, cycles from the first {EARLY_TOKENS} tokens", text(result["tau_first_32"])),
        ("speedup over the plain loop (95 %)", _times_as_fast(result, "plain")),
        ("speedup over transformers' generate (95 %)", _times_as_fast(result, "generate")),
        ("draft, verify a cycle; plain step", _times(result, summary)),
        ("share of repeated 4-grams", text(result["repeated_4gram_share"], 2)),
    ]
    show(
        *lines,
        table(("position", "at risk", "conditional", "95 %", "survival", "95 %"), positions),
        table(predicted[0], predicted[1:]),
        table(("quantity", "value"), numbers),
        "tau: bonus included, micro, complete cycles; intervals clustered by prompt",
        *([summary.busy] if summary.busy else []),
        f"report: {result['report']}",
    )


def _times_as_fast(result: dict[str, Any], beside: str) -> str:
    from gumiho_simulator.reports.tables import text

    return f"{text(result[f'speedup_{beside}'], 2)}x {text(result[f'speedup_{beside}_ci'], 2)}"


def _times(result: dict[str, Any], summary: DemoSummary) -> str:
    from gumiho_simulator.reports.tables import text

    times = (result["draft_ms"], result["verify_ms"], summary.plain_step_ms)
    return ", ".join(f"{text(t, 2)} ms" for t in times)
