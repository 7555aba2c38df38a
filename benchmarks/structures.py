"""Which structure pays on this machine, and does `auto` find it? Every structure beside plain decoding, interleaved.

Run: python benchmarks/structures.py [--drafter tiny:eagle] [--limit 24] [--repeats 2] [--auto]. Prompt by prompt all
structures are timed one after the other, in random order. A speedup is a ratio of whole wall times, prefill included,
with a 95 % interval over prompts; beside it that of decoding alone, from the first token on, which is what `auto`
predicts. With --auto the structure that `--structure auto` chooses, from texts of prompts that are not timed, is timed
among them, and its loss against the best: of the grid, by the other half of the prompts, so that the best is not picked
by its own luck. A table on stderr, one JSON object last.
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
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.logging.recorder import Recorder, environment
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.auto import choose
from gumiho_decoder.measuring.pair import load_pair
from gumiho_decoder.measuring.prompts import read_prompts, spread
from gumiho_decoder.measuring.resampling import speedup_interval
from gumiho_theory import InputError, Structure

CHAINS = tuple(f"chain:{length}" for length in range(1, 8))
TREES = ((8, 3), (16, 5), (32, 8), (60, 10))
RESAMPLES = 4000  # of the loss


def grid(drafter) -> list[str]:
    """Return the structures that the drafter can make."""
    depth = drafter.depth or 7
    named = [*CHAINS, *(f"tree:total={total},top_k={k},depth={depth},mlp_topk={k}" for total, k in TREES)]
    made = []
    for name in named:
        try:
            drafter.check(Structure.parse(name), DraftOptions())
        except InputError:
            continue
        made.append(str(Structure.parse(name)))
    return made


def ratio(plain_seconds: np.ndarray, seconds: np.ndarray) -> dict[str, float | None]:
    """Return the ratio of two sums over the same prompts, and its 95 % interval; None of a single prompt."""
    alike = np.ones(len(seconds))  # the same tokens
    limits = speedup_interval(np.stack([alike, seconds, alike, plain_seconds], axis=1)) or (None, None)
    return {"ratio": float(plain_seconds.sum() / seconds.sum()), "lo": limits[0], "hi": limits[1]}


def spelt(found: dict[str, float | None]) -> str:
    """Return a ratio as text."""
    limits = "" if found["lo"] is None else f" [{found['lo']:.2f}, {found['hi']:.2f}]"
    return f"{found['ratio']:.2f}x{limits}"


def loss_of(auto: np.ndarray, others: np.ndarray) -> dict[str, float]:
    """Return how much slower `auto` is than the grid's best. Seconds by prompt: (prompts,), (structures, prompts)."""
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(RESAMPLES):
        chosen = rng.permutation(rng.integers(len(auto), size=len(auto)))
        judge, other = chosen[::2], chosen[1::2]
        best = others[np.argmin(others[:, judge].sum(1))]
        losses.append(1 - best[other].sum() / auto[other].sum())
    low, high = np.quantile(losses, (0.025, 0.975))
    return {"loss": float(np.mean(losses)), "lo": float(low), "hi": float(high)}


def main(
    drafter: str = "tiny:gumiho",
    prompts: Prompts = MEASURED,
    limit: Annotated[int, typer.Option(min=1, help="Prompts, spread evenly over the file.")] = 24,
    repeats: int = 2,
    max_new_tokens: int = 96,
    auto: Annotated[bool, typer.Option("--auto", help="Judge `--structure auto` too.")] = False,
    threads: int = 1,
) -> None:
    """Time every structure."""
    torch.set_num_threads(threads)
    target, heads = load_pair("tiny", drafter)
    chosen = read_prompts(str(prompts))
    timed = spread(range(len(chosen)), min(limit, len(chosen) // 2 or 1))
    texts = [target.encode(chosen[index].turns[0]) for index in timed]
    structures = grid(heads)
    picked = None
    if auto:
        others = [target.encode(chosen[index].turns[0]) for index in range(len(chosen)) if index not in timed]
        picked = choose(target, heads, others, GenerationConfig(max_new_tokens))
    own = [] if picked is None else [str(picked.structure)]
    names = list(dict.fromkeys([*structures, *own]))
    seconds = {name: np.zeros((2, len(texts))) for name in ("plain", *names)}  # in all, and behind the first token
    recorders = {name: Recorder() for name in names}
    for repeat in range(-1, repeats):  # the first round only warms up
        for index, text in enumerate(texts if repeat >= 0 else texts[:1]):
            for name in np.random.default_rng((repeat + 1, index)).permutation(sorted(seconds)).tolist():
                if name == "plain":
                    made = plain(target, text, GenerationConfig(max_new_tokens))
                else:
                    record = recorders[name] if repeat == 0 else Recorder()
                    config = GenerationConfig(max_new_tokens, Structure.parse(name))
                    made = generate(target, heads, text, config, record.prompt(str(index), None, 0))
                if repeat >= 0:
                    seconds[name][:, index] += made.seconds, made.seconds - made.first_seconds
    rows = []
    for name in names:
        whole, decoding = (ratio(a, b) for a, b in zip(seconds["plain"], seconds[name], strict=True))
        tau = recorders[name].trace({}).tau()
        rows.append({"structure": name, "tau": tau, "speedup": whole, "decoding": decoding, "auto": name in own})
        shown = "  ".join(spelt(one) for one in (whole, decoding))
        print(f"{name:46} tau {tau:.2f}  {shown}{' <- auto' * (name in own)}", file=sys.stderr)
    result = {"drafter": drafter, "prompts": len(texts), "threads": torch.get_num_threads(), "rows": rows}
    if picked is not None:
        loss = loss_of(seconds[own[0]][0], np.array([seconds[name][0] for name in structures]))
        predicted = {"predicted": picked.speedup, "interval": picked.interval}
        result["auto"] = {"structure": own[0], **predicted, "loss": loss}
        print(json.dumps(result["auto"]), file=sys.stderr)
    print(json.dumps({**result, "environment": environment(target.device, target.dtype)}))


if __name__ == "__main__":
    typer.run(main)
