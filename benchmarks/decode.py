"""Where does a cycle's time go? Target forward, drafter forward, and everything else, on the embedded pair, fp32.

Run: python benchmarks/decode.py [--prompts 8] [--device cpu]. A table on stderr, one JSON object last. Times are
medians over cycles; the share outside the two models' forwards is a ratio within this run.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict

import numpy as np
import torch
import typer

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Cycle
from gumiho_decoder.drafters.growing.cache import TreeCache
from gumiho_decoder.drafters.gumiho.model import StackedHeads
from gumiho_decoder.embedded import PROMPTS
from gumiho_decoder.logging.recorder import environment
from gumiho_decoder.loop import generate
from gumiho_decoder.measuring.pair import load_pair
from gumiho_decoder.measuring.prompts import read_prompts
from gumiho_theory import Structure

STRUCTURES = (
    "chain:3",
    "chain:7",
    "static:[[1],[2],[3],[1,1],[1,2],[2,1],[1,1,1],[1,1,2],[1,1,1,1]]",
    "tree:total=16,top_k=5,depth=7,mlp_topk=5",
    "tree:total=60,top_k=10,depth=7,mlp_topk=10",
)


class Inside:
    """Seconds spent inside the models' forwards, by part; nested calls count once."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds, self._depth = device, defaultdict(float), 0

    def wrap(self, owner, name: str, part: str) -> None:
        inner = getattr(owner, name)

        def timed(*arguments, **keywords):
            self._depth += 1
            started = self._now()
            try:
                return inner(*arguments, **keywords)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds[part] += self._now() - started

        setattr(owner, name, timed)

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


def main(prompts: int = 8, tokens: int = 96, device: str = "cpu", drafter: str = "tiny:gumiho") -> None:
    """Time the parts of a cycle for each structure."""
    target, made = load_pair("tiny", drafter, device=device)
    inside = Inside(target.device)
    inside.wrap(target, "_forward", "target")
    inside.wrap(target, "log_probabilities", "drafter")
    inside.wrap(target, "embed", "drafter")
    inside.wrap(made.model, "combine", "drafter")
    inside.wrap(TreeCache, "_run", "drafter")
    inside.wrap(StackedHeads, "__call__", "drafter")
    chosen = read_prompts(str(PROMPTS))
    texts = [target.encode(p.turns[0]) for p in chosen[:: len(chosen) // prompts]][:prompts]
    rows = []
    for name in STRUCTURES:
        config = GenerationConfig(tokens, Structure.parse(name))
        generate(target, made, texts[0], config)
        parts: list[tuple[float, float, float]] = []
        for text in texts:
            before = dict.fromkeys(("target", "drafter"), 0.0)

            def record(cycle: Cycle, before=before, parts=parts) -> None:
                whole = cycle.draft_seconds + cycle.verify_seconds + cycle.other_seconds
                now = {part: inside.seconds[part] for part in before}
                if cycle.position > len(text):  # noqa: B023 -- the first cycle's forwards include prefill's
                    parts.append((whole, now["target"] - before["target"], now["drafter"] - before["drafter"]))
                before.update(now)

            inside.seconds.clear()
            generate(target, made, text, config, record)
        whole, of_target, of_drafter = np.array(parts).T
        outside = 1 - (of_target + of_drafter).sum() / whole.sum()
        medians = [1000 * float(np.median(x)) for x in (whole, of_target, of_drafter)]
        rows.append(
            {
                "structure": name,
                "cycles": len(parts),
                "cycle_ms": medians[0],
                "target_ms": medians[1],
                "drafter_ms": medians[2],
                "outside_share": float(outside),
            }
        )
        print(
            f"{name:66} cycle {medians[0]:6.2f} ms, target {medians[1]:6.2f}, drafter {medians[2]:6.2f}, "
            f"outside {100 * outside:4.1f} %",
            file=sys.stderr,
        )
    print(json.dumps({"rows": rows, "environment": environment(target.device, target.dtype)}))


if __name__ == "__main__":
    typer.run(main)
