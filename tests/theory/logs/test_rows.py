"""What both row logs do alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gumiho_theory import EveryPositionLog, InputError, Trace
from gumiho_theory.logs import RowLog

FACTS = {"top_k": 1, "structures": ["chain:2"]}


def starts(prompt: str, depths: list[int]) -> list[dict[str, Any]]:
    return [
        {
            "prompt_id": prompt,
            "turn": 0,
            "position": i,
            "drafted": depth,
            "rank": [1] * depth,
            "top_ids": [[i]] * depth,
            "accepted": [depth],
            "censored": [0],
        }
        for i, depth in enumerate(depths)
    ]


def test_a_selection_holds_the_prompt_s_rows_no_wider_than_they_are(row: Callable[..., dict[str, Any]]) -> None:
    log = EveryPositionLog.from_rows([*starts("a", [2, 3]), *starts("b", [1, 0])], FACTS)
    some = log.select(["b"])
    assert some.prompts == ("b",) and some.depth == 1
    assert some.top_ids.shape == (2, 1, 1) and some.structures == log.structures
    assert np.array_equal(some.accepted_by("chain:2"), [1, 0]) and some.missing == log.missing
    trace = Trace.from_rows([row(), row(prompt_id="b", drafted=2, nodes=3)])
    assert trace.select(["b"]).rank.shape == (1, 2)
    for one, name in ((log, "log"), (trace, "trace")):
        assert isinstance(one, RowLog)
        with pytest.raises(InputError, match=f"prompt_ids: found 'c', wanted prompts of the {name}"):
            one.select(["a", "c"])


def test_a_number_below_its_column_s_null_is_refused(row: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(InputError, match=r"row 0, column rank, depth 2: found -1, wanted at least 1, or null"):
        Trace.from_rows([row(rank=[1, -1, None])])
