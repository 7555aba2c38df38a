"""Synthetic traces whose truth is known: prompts differ in difficulty, cycles of one prompt are alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from gumiho_theory import Trace

RATES = (0.88, 0.89, 0.78, 0.45, 0.50, 0.45, 0.60)
TASKS = ("code", "maths", "qa", "summary", "chat", "translation", "stories", "logs")

MakeTrace = Callable[..., Trace]


def make_trace(
    rng: np.random.Generator,
    prompts: int = 64,
    rates: Sequence[float] = RATES,
    spread: float = 0.35,
    mean_cycles: float = 30.0,
    eos_share: float = 0.0,
    structure: str | None = "chain",
) -> Trace:
    """Draw a trace; each prompt shifts the logit of every rate by one normal number of deviation `spread`.

    With probability `eos_share` a prompt ends in an accepted EOS, which censors its last cycle.
    """
    depth = len(rates)
    logits = np.log(rates) - np.log1p(-np.asarray(rates))
    rows: list[dict[str, Any]] = []
    for number in range(prompts):
        chance = 1 / (1 + np.exp(-(logits + rng.normal(0, spread))))
        cycles = 2 + int(rng.poisson(mean_cycles - 2))
        position = int(rng.integers(20, 200))
        eos = rng.random() < eos_share
        for cycle in range(cycles):
            won = rng.random(depth) < chance
            accepted = depth if won.all() else int(won.argmin())
            last = cycle == cycles - 1
            censored_at = None
            if last and eos and accepted > 0:
                accepted = censored_at = int(rng.integers(1, accepted + 1))
            reached = min(accepted + 1, depth) if censored_at is None else censored_at
            q = rng.beta(4, 2, depth)
            rows.append(
                {
                    "prompt_id": f"{TASKS[number % len(TASKS)]}-{number:02d}",
                    "task": TASKS[number % len(TASKS)],
                    "turn": 0,
                    "cycle": cycle,
                    "position": position,
                    "drafted": depth,
                    "nodes": depth + 1,
                    "accepted": accepted,
                    "committed": accepted + (censored_at is None),
                    "censored_at": censored_at,
                    "stop_reason": None if not last else ("eos" if censored_at else "length"),
                    "draft_seconds": float(rng.gamma(40, 2.05e-3 / 40)),
                    "verify_seconds": float(rng.gamma(60, 3.2e-3 / 60)),
                    "other_seconds": float(rng.gamma(20, 0.35e-3 / 20)),
                    "rank": [int(i < accepted) or None for i in range(depth)],
                    "q_draft": [float(q[i]) if i < reached else None for i in range(depth)],
                    "p_target": [float(q[i]) if i < reached else None for i in range(depth)],
                }
            )
            position += accepted + 1
    provenance: dict[str, Any] = {"target": "synthetic", "seed": 0}
    if structure is not None:
        provenance["structure"] = f"chain:{depth}" if structure == "chain" else structure
    return Trace.from_rows(rows, provenance)


@pytest.fixture(scope="session")
def traces() -> MakeTrace:
    """Return the function that draws traces."""
    return make_trace


@pytest.fixture(scope="session")
def trace() -> Trace:
    """Return one trace of 64 prompts of 8 tasks, about 30 cycles each, some ended by an accepted EOS."""
    return make_trace(np.random.default_rng(7), eos_share=0.3)
