"""The main job on the embedded models: decode, check, log, fit on half of the prompts, forecast the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Cycle
from gumiho_decoder.draft import Drafter
from gumiho_decoder.embedded import PROMPTS
from gumiho_decoder.loop import generate
from gumiho_decoder.measuring.bench.rows import offsets, tau_of
from gumiho_decoder.measuring.decode import decode
from gumiho_decoder.measuring.machine import busy
from gumiho_decoder.measuring.outputs import make_folder
from gumiho_decoder.measuring.pair import load_pair
from gumiho_decoder.measuring.prompts import read_prompts
from gumiho_decoder.measuring.runs import Output, RunConfig
from gumiho_decoder.measuring.summary import lossless, repeated_share, speed
from gumiho_decoder.target import Target
from gumiho_simulator import DemoSummary, NearTie, TreeDrawing, Validation, validate, write_report
from gumiho_simulator.forecasting import summarize as summarize_log
from gumiho_theory import ChainStructure, DynamicTree, Trace

# On a CPU a verification's time grows with its rows, so a chain pays where a large tree does not:
# benchmarks/structures.py measures it.
STRUCTURE = ChainStructure(7)
DRAWN = DynamicTree(total=20, top_k=6, depth=7, mlp_topk=6)
TOKENS = 80
LIBRARY_PROMPTS = 12
EARLY_TOKENS = 32
SEED = 0

# What `--json` says of the trace, and of the headline numbers.
_FACTS = ("cycles", "tau", "tau_ci", "tau_macro", "conditional", "conditional_ci", "survival", "at_risk")
_FACTS += ("draft_ms", "verify_ms", "mean_committed")
_HEADLINES = ("prompts", "structure", "tau_first_32", "tokens_per_second", "plain_tokens_per_second", "speedup_plain")
_HEADLINES += ("speedup_plain_ci", "speedup_generate", "speedup_generate_ci", "busy", "repeated_4gram_share")


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, and where its report is.

    Attributes
    ----------
    outputs : list of Output
        Of every prompt, beside plain decoding and, for some, transformers' `generate`.
    trace : Trace
    validation : Validation
        Forecasts of the held-out half of the prompts.
    facts : dict
        What `gumiho traces show` says of the trace.
    summary : DemoSummary
        Headline numbers.
    report : Path
        The page.
    """

    outputs: list[Output]
    trace: Trace
    validation: Validation
    facts: dict[str, Any]
    summary: DemoSummary
    report: Path

    @property
    def different(self) -> bool:
        """Whether some output was not the target's own."""
        return self.summary.lossless["different"] > 0

    def to_json(self) -> dict[str, Any]:
        """Return what `gumiho demo --json` prints."""
        agree = [o.library.token_ids == o.plain.token_ids for o in self.outputs if o.library and o.plain]
        return {
            **{key: self.facts[key] for key in _FACTS},
            **{key: getattr(self.summary, key) for key in _HEADLINES},
            "lossless": dict(self.summary.lossless),
            "near_ties": [vars(tie) for tie in self.summary.near_ties],
            "generate_checked": len(agree),
            "generate_equal": sum(agree),
            "tau_convention": "micro, bonus included, complete cycles",
            "new_tokens": sum(len(o.speculative.token_ids) for o in self.outputs),
            "validation": self.validation.to_json(),
            "trace": "trace.parquet",
            "report": str(self.report),
        }


def run_demo(folder: Path) -> DemoResult:
    """Run the main job on the embedded pair; write report, figures and trace into `folder`, which is made if need be.

    Raises InputError: The folder cannot be written.
    """
    make_folder(folder)
    target, drafter = load_pair("tiny", "tiny:gumiho")
    config = RunConfig(plain=True, check=True, library=LIBRARY_PROMPTS)
    prompts, generation = read_prompts(str(PROMPTS)), GenerationConfig(TOKENS, STRUCTURE)
    warning = busy()
    outputs, trace = decode(target, drafter, prompts, generation, config, folder / "trace.parquet")
    validation = validate(trace, holdout=0.5, seed=SEED)
    facts = summarize_log(trace).to_json()
    summary = _summary(target, drafter, outputs, trace, facts, warning)
    return DemoResult(outputs, trace, validation, facts, summary, write_report(folder, trace, validation, summary))


def _summary(
    target: Target,
    drafter: Drafter,
    outputs: Sequence[Output],
    trace: Trace,
    facts: dict[str, Any],
    warning: str | None,
) -> DemoSummary:
    rates = speed(outputs)
    # A step of plain decoding, as a cycle is drawn: without the reading of the prompt.
    plain_seconds = sum(o.plain.seconds - o.plain.first_seconds for o in outputs if o.plain)
    plain_steps = sum(len(o.plain.token_ids) - 1 for o in outputs if o.plain)
    return DemoSummary(
        title="Gumiho demo: an embedded model pair, decoded, checked and forecast",
        target="tiny, a LLaMA of 12 layers trained on Python sources",
        drafter="tiny:gumiho, 2 serial and 5 parallel positions",
        structure=str(STRUCTURE),
        prompts=len(outputs),
        lossless=lossless(outputs),
        near_ties=tuple(
            NearTie(o.prompt_id, o.comparison.position, o.comparison.gap)
            for o in outputs
            if o.comparison is not None and o.comparison.verdict == "tie"
        ),
        tau=facts["tau"],
        tau_ci=facts["tau_ci"],
        tau_first_32=tau_of(trace, trace.complete & (offsets(trace) < EARLY_TOKENS), "tau")["tau"],
        speedup_plain=rates["plain_speedup"],
        speedup_plain_ci=rates["plain_speedup_ci"],
        speedup_generate=rates["library_speedup"],
        speedup_generate_ci=rates["library_speedup_ci"],
        busy=warning,
        tokens_per_second=rates["tokens_per_second"],
        plain_tokens_per_second=rates["plain_tokens_per_second"],
        plain_step_ms=1000 * plain_seconds / max(1, plain_steps),
        repeated_4gram_share=repeated_share(outputs),
        drawing=draw_cycle(target, drafter, outputs[0]),
        provenance=trace.provenance,
    )


def draw_cycle(target: Target, drafter: Drafter, output: Output) -> TreeDrawing:
    """Decode one prompt with a small dynamic tree and return its cycle with the longest accepted path."""
    cycles: list[Cycle] = []
    generate(target, drafter, list(output.prompt), GenerationConfig(64, DRAWN), cycles.append)
    best = max(range(len(cycles)), key=lambda i: len(cycles[i].path))
    cycle = cycles[best]
    draft = cycle.draft
    parents = draft.tree.parents.tolist()
    tokens = draft.tokens.tolist()
    q_draft = [float(draft.log_q[draft.row[p], t].exp()) for p, t in zip(parents[1:], tokens[1:], strict=True)]
    return TreeDrawing(
        tree=draft.tree,
        labels=tuple(target.tokenizer.decode([t]) for t in tokens),
        accepted=tuple(cycle.path[1:]),
        q_draft=np.array([1.0, *q_draft]),
        caption=f"prompt {output.prompt_id}, cycle {best}, {DRAWN}",
    )
