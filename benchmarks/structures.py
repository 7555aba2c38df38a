"""Which structure pays on this machine? The embedded pair, every structure beside plain decoding, interleaved repeats.

Run: python benchmarks/structures.py [--prompts 16] [--repeats 3]. Prints a table on stderr and one JSON object last.
A ratio is of whole wall times within one run; its interval is the range over repeats.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import numpy as np
import typer

from gumiho_decoder.commands import load_pair
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.prompts import read_prompts
from gumiho_decoder.recorder import Recorder, environment
from gumiho_decoder.tiny import PROMPTS
from gumiho_theory import Structure

CHAINS = tuple(f"chain:{length}" for length in range(1, 8))
TREES = tuple(f"tree:total={total},top_k={k},depth=7,mlp_topk={k}" for total, k in ((8, 3), (16, 5), (32, 8), (60, 10)))


def main(
    prompts: Annotated[int, typer.Option(help="Prompts, spread over the shipped ones.")] = 16,
    repeats: int = 3,
    tokens: int = 96,
) -> None:
    """Time every structure."""
    target, drafter = load_pair("tiny", "tiny:gumiho")
    chosen = read_prompts(str(PROMPTS))
    texts = [target.encode(p.turns[0]) for p in chosen[:: max(1, len(chosen) // prompts)]][:prompts]
    structures = CHAINS + TREES
    seconds = {name: np.zeros(repeats) for name in ("plain", *structures)}
    taus = {}
    for repeat in range(-1, repeats):  # the first round only warms up
        recorders = {name: Recorder() for name in structures}
        for index, text in enumerate(texts if repeat >= 0 else texts[:1]):
            names = np.random.default_rng((repeat + 1, index)).permutation(sorted(seconds))
            for name in names.tolist():
                if name == "plain":
                    made = plain(target, text, GenerationConfig(tokens))
                else:
                    config = GenerationConfig(tokens, Structure.parse(name))
                    made = generate(target, drafter, text, config, recorders[name].prompt(str(index), None, 0))
                if repeat >= 0:
                    seconds[name][repeat] += made.seconds
        if repeat >= 0:
            taus = {name: recorder.trace({}).tau() for name, recorder in recorders.items()}
    rows = []
    for name in structures:
        ratio = seconds["plain"] / seconds[name]
        low, mean, high = ratio.min(), ratio.mean(), ratio.max()
        rows.append({"structure": name, "tau": taus[name], "speedup": mean, "lo": low, "hi": high})
        print(f"{name:42} tau {taus[name]:.2f}  {mean:.2f}x [{low:.2f}, {high:.2f}]", file=sys.stderr)
    print(json.dumps({"rows": rows, "environment": environment(target.device, target.dtype)}))


if __name__ == "__main__":
    typer.run(main)
