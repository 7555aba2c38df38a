"""What full tree attention gives and what it costs: both readings of it beside the same tree without it, greedy, fp32.

Run: python benchmarks/full_tree_attention.py [--prompts FILE] [--limit 40] [--max-new-tokens 128] [--drafter
tiny:gumiho]. Per tree and reading: prompts and tokens that leave greedy decoding (a near-tie, below the stated bound,
counts apart); the share of tokens that are not the target's greedy choice even behind their own prefix; and the change
of tau, paired by prompt, with a 95 % interval over prompts. Once outputs differ, tau is that of another text. A table
on stderr, one JSON object last.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import numpy as np
import torch
import typer
from shared import MEASURED, Prompts

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.recorder import Recorder, environment
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.pair import load_pair
from gumiho_decoder.measuring.prompts import read_prompts
from gumiho_decoder.target import Target
from gumiho_theory import DynamicTree

TREES = {total: DynamicTree(total=total, top_k=k, depth=7, mlp_topk=k) for total, k in ((16, 6), (60, 10))}
READINGS = ("off", "released", "literal")
RESAMPLES = 4000


def not_greedy(target: Target, prompt: list[int], made: tuple[int, ...]) -> int:
    """Return how many tokens are not the target's greedy choice behind the prompt and the tokens made before them."""
    tokens = torch.tensor([[*prompt, *made]], device=target.device)
    with torch.inference_mode():
        choices = target.model(input_ids=tokens, use_cache=False).logits[0, len(prompt) - 1 : -1].argmax(-1)
    return int((choices.cpu() != torch.tensor(made)).sum())


def main(
    prompts: Prompts = MEASURED,
    limit: Annotated[int, typer.Option(help="Prompts, spread evenly over the file.")] = 40,
    max_new_tokens: int = 128,
    drafter: str = "tiny:gumiho",
) -> None:
    """Decode every prompt with and without."""
    target, heads = load_pair("tiny", drafter)
    chosen = read_prompts(str(prompts))
    texts = [target.encode(p.turns[0]) for p in chosen[:: max(1, len(chosen) // limit)]][:limit]
    greedy = [plain(target, text, GenerationConfig(max_new_tokens)).token_ids for text in texts]
    rows = []
    for total, tree in TREES.items():
        taus: dict[str, np.ndarray] = {}
        for reading in READINGS:
            verdicts, wrong, apart, tokens, sums = [], 0, 0, 0, []
            for index, (text, expected) in enumerate(zip(texts, greedy, strict=True)):
                recorder = Recorder()
                config = GenerationConfig(max_new_tokens, tree, fta=reading)
                made = generate(target, heads, text, config, recorder.prompt(str(index), None, 0)).token_ids
                verdicts.append(compare(target, text, expected, made).verdict)
                apart += sum(a != b for a, b in zip(made, expected, strict=False)) + abs(len(made) - len(expected))
                wrong, tokens = wrong + not_greedy(target, text, made), tokens + len(made)
                counts = recorder.trace({}).counts_by_prompt()
                sums.append((counts.total_accepted.sum(), counts.complete_cycles.sum()))
            taus[reading] = np.array(sums, dtype=float)
            row = {
                "nodes": total,
                "reading": reading,
                "prompts": len(texts),
                **{f"prompts_{verdict}": verdicts.count(verdict) for verdict in ("equal", "tie", "different")},
                "tokens": tokens,
                "tokens_apart": apart / tokens,
                "tokens_not_greedy": wrong / tokens,
                **change(taus["off"], taus[reading]),
            }
            rows.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps({"rows": rows, "environment": environment(target.device, target.dtype)}))


def change(off: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """Return tau, and its change against `off`; both are accepted tokens and cycles by prompt, (prompts, 2)."""
    draws = np.random.default_rng(0).integers(len(off), size=(RESAMPLES, len(off)))

    def tau(sums: np.ndarray) -> np.ndarray:
        return 1 + sums[..., 0] / sums[..., 1]

    low, high = np.quantile(tau(other[draws].sum(1)) - tau(off[draws].sum(1)), (0.025, 0.975))
    whole = tau(other.sum(0))
    return {
        "tau": float(whole),
        "change": float(whole - tau(off.sum(0))),
        "change_lo": float(low),
        "change_hi": float(high),
    }


if __name__ == "__main__":
    typer.run(main)
