from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# A machine busy with something else must not fail a test of arithmetic.
settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")

Rows = list[dict[str, Any]]


def _random_rows(seed: int, depth: int = 5, prompts: int = 4) -> Rows:
    """Return consistent rows with every ending: censored by EOS or by the context, cut, complete."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for prompt in range(int(rng.integers(0, prompts + 1))):
        for turn in range(int(rng.integers(1, 3))):
            position, last = int(rng.integers(1, 50)), int(rng.integers(1, 6)) - 1
            for cycle in range(last + 1):
                ending = rng.choice(["eos", "context", "length", None]) if cycle == last else None
                drafted = int(rng.integers(0, depth + 1)) if ending == "context" else depth
                accepted = int(rng.integers(0, drafted + 1))
                censored = {"eos": accepted, "context": drafted}.get(ending)
                if ending == "eos" and accepted == 0:
                    censored = None
                risk = drafted if censored is None else censored
                tried = min(accepted + 1, risk)
                inside = [i < tried for i in range(drafted)]
                committed = accepted if ending == "eos" else accepted + 1
                rows.append(
                    {
                        "prompt_id": f"p{prompt}",
                        "task": None if prompt == 0 else f"t{prompt % 2}",
                        "turn": turn,
                        "cycle": cycle,
                        "position": position,
                        "drafted": drafted,
                        "nodes": drafted + 1 + int(rng.integers(0, 9)),
                        "accepted": accepted,
                        "committed": committed,
                        "censored_at": censored,
                        "stop_reason": ending,
                        "draft_seconds": float(rng.random()),
                        "verify_seconds": None if rng.random() < 0.3 else float(rng.random()),
                        "other_seconds": float(rng.random()),
                        "rank": [int(rng.integers(1, 9)) if a and rng.random() < 0.8 else None for a in inside],
                        "q_draft": [float(rng.random()) if a else None for a in inside],
                        "p_target": None if rng.random() < 0.2 else [1.0 if a else None for a in inside],
                    }
                )
                position += max(committed, 1)
    order = rng.permutation(len({row["prompt_id"] for row in rows})) if rng.random() < 0.5 else []
    return [row for prompt in order for row in rows if row["prompt_id"] == f"p{prompt}"] if len(order) else rows


def _row(**changes: Any) -> dict[str, Any]:
    row = {
        "prompt_id": "a",
        "turn": 0,
        "cycle": 0,
        "position": 10,
        "drafted": 3,
        "nodes": 4,
        "accepted": 2,
        "committed": 3,
        "censored_at": None,
        "stop_reason": None,
    }
    return {**row, **changes}


@pytest.fixture(scope="session")
def random_rows() -> Callable[..., Rows]:
    return _random_rows


@pytest.fixture(scope="session")
def row() -> Callable[..., dict[str, Any]]:
    """Return one valid row with some of its values changed."""
    return _row
