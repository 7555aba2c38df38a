from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import AcceptanceCounts, InputError, Trace

COUNTS = AcceptanceCounts(
    groups=("a", "b"),
    cycles=np.array([10, 4]),
    total_accepted=np.array([11, 3]),
    complete_cycles=np.array([9, 4]),
    at_risk=np.array([[10, 8], [4, 0]]),
    accepted=np.array([[8, 4], [3, 0]]),
)


def test_pooled_rates_divide_sums_by_those_at_risk() -> None:
    # Group b drafted to depth 1 only: dividing by all 14 cycles would give 4/14 at depth 2.
    assert COUNTS.conditional().tolist() == [11 / 14, 4 / 8]
    assert COUNTS.survival() == pytest.approx([11 / 14, 11 / 28])
    assert COUNTS.tau() == pytest.approx(1 + 14 / 13)
    assert (COUNTS.depth, COUNTS.has_positions) == (2, True)


def test_a_log_without_positions_has_tau_but_no_rates() -> None:
    counts = replace(COUNTS, at_risk=None, accepted=None)
    assert counts.tau() == COUNTS.tau()
    assert (counts.depth, counts.has_positions) == (0, False)
    with pytest.raises(InputError, match="no counts by position"):
        counts.survival()


def test_no_complete_cycle_means_no_tau() -> None:
    assert replace(COUNTS, complete_cycles=[0, 0], total_accepted=[0, 0]).tau() is None


@given(st.integers(0, 2**32 - 1))
def test_json_leads_back_to_the_same_counts(random_rows: Callable[..., Any], seed: int) -> None:
    counts = Trace.from_rows(random_rows(seed)).counts_by_prompt()
    again = AcceptanceCounts.from_json(json.loads(json.dumps(counts.to_json())))
    assert again.to_json() == counts.to_json()
    bare = replace(counts, at_risk=None, accepted=None)
    assert AcceptanceCounts.from_json(json.loads(json.dumps(bare.to_json()))).to_json() == bare.to_json()


def test_select_takes_groups_in_the_order_asked_for() -> None:
    part = COUNTS.select(["b", "a"])
    assert part.groups == ("b", "a")
    assert part.cycles.tolist() == [4, 10]
    assert part.at_risk is not None and part.at_risk.tolist() == [[4, 0], [10, 8]]
    assert COUNTS.select([]).tau() is None
    for names in (["z"], ["a", "a"]):
        with pytest.raises(InputError, match="groups"):
            COUNTS.select(names)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"complete_cycles": [11, 4]}, "complete_cycles"),
        ({"complete_cycles": [0, 4]}, "total_accepted"),
        ({"total_accepted": [13, 3]}, "total_accepted"),
        ({"at_risk": [[11, 8], [4, 0]]}, "at_risk"),
        ({"at_risk": [[10, 9], [4, 0]]}, "at_risk"),
        ({"accepted": [[8, 9], [3, 0]]}, "accepted"),
        ({"at_risk": None}, "at_risk and accepted"),
        ({"at_risk": [[10], [4]]}, "at_risk and accepted"),
        ({"cycles": [10, 4, 3]}, "cycles"),
        ({"cycles": [10.0, 4.0]}, "cycles"),
        ({"cycles": [-1, 4]}, "cycles"),
        ({"cycles": [10, 2**70]}, "cycles"),
        ({"accepted": [[8, 4], [3]]}, "accepted"),
        ({"groups": ("a", "a")}, "groups"),
        ({"groups": ("a", 3)}, "groups"),
    ],
)
def test_counts_that_contradict_one_another_are_refused(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError, match=place):
        replace(COUNTS, **changes)


def test_json_of_another_schema_or_without_its_keys_is_refused() -> None:
    data = COUNTS.to_json()
    for bad in (
        {**data, "schema": "gumiho.acceptance_counts/2"},
        {**data, "cycles": None},
        {**data, "groups": "ab"},
        {},
    ):
        with pytest.raises(InputError):
            AcceptanceCounts.from_json(bad)
