"""How much does the embedded target repeat itself? Its own outputs, greedy and at temperature 1, on prompts kept apart.

Run: python benchmarks/repeats.py [--limit 40] [--max-new-tokens 128]. The share of an output's 4-grams that it has had
before, with a 95 % interval over prompts: looping text is easier to draft than real text. One JSON object last.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import typer
from shared import MEASURED, read_tokens

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.recorder import environment
from gumiho_decoder.loop import plain
from gumiho_decoder.target import load_target


def main(prompts: Path = MEASURED, limit: int = 40, max_new_tokens: int = 128, seed: int = 0) -> None:
    """Write and count."""
    target = load_target("tiny")
    texts = read_tokens(target, prompts, limit)
    rows = []
    for temperature in (0.0, 1.0):
        counts = []
        for index, text in enumerate(texts):
            made = plain(target, text, GenerationConfig(max_new_tokens, temperature=temperature, seed=seed + index))
            grams = [made.token_ids[i : i + 4] for i in range(len(made.token_ids) - 3)]
            counts.append((len(grams) - len(set(grams)), len(grams)))
        repeated = np.array(counts, dtype=float)
        draws = repeated[np.random.default_rng(0).integers(len(repeated), size=(4000, len(repeated)))].sum(axis=1)
        low, high = np.quantile(draws[:, 0] / draws[:, 1], (0.025, 0.975))
        share = repeated[:, 0].sum() / repeated[:, 1].sum()
        rows.append({"temperature": temperature, "share": share, "lo": low, "hi": high, "prompts": len(texts)})
    print(json.dumps({"rows": rows, "environment": environment(target.device, target.dtype)}))


if __name__ == "__main__":
    typer.run(main)
