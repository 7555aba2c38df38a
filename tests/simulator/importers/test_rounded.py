"""Counts behind rounded numbers, against trying every one."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_simulator.importers.reading.rounded import cycles_of, half_unit, survivors


@given(st.integers(1, 12), st.lists(st.integers(0, 12), min_size=1, max_size=3), st.integers(0, 36))
def test_counts_are_found_exactly_where_trying_all_finds_some(cycles: int, drawn: list[int], total: int) -> None:
    rates = [round(min(one, cycles) / cycles, 1) for one in sorted(drawn, reverse=True)]
    every = [
        counts
        for counts in product(range(cycles + 1), repeat=len(rates))
        if sum(counts) == total
        and all(a >= b for a, b in pairwise(counts))
        and all(abs(n / cycles - rate) <= 0.05 + 1e-12 for n, rate in zip(counts, rates, strict=True))
    ]
    found = survivors(rates, 0.05, cycles, total)
    assert (found is None) == (not every)
    assert found is None or tuple(found) in every


@given(st.integers(1, 400), st.data())
def test_the_true_number_of_cycles_is_never_said_to_be_impossible(cycles: int, data: st.DataObject) -> None:
    drafted = data.draw(st.integers(cycles, 4 * cycles))
    accepted = data.draw(st.integers(0, drafted))
    found, exact = cycles_of(accepted, drafted, float(f"{1 + accepted / cycles:.2f}"), 0.005, depth=4)
    assert found > 0
    assert not exact or drafted == 4 * found or found == cycles


def test_half_a_unit_of_the_last_digit() -> None:
    assert [half_unit(text) for text in ("2", "2.8", "2.800")] == pytest.approx([0.5, 0.05, 0.0005])


@pytest.mark.parametrize("mean", ["0.5", "1." + "0" * 400, "9" * 400])
def test_means_that_no_cycles_have_give_none(mean: str) -> None:
    assert cycles_of(18, 30, float(mean), half_unit(mean))[0] == 0
    assert survivors([float(mean) + 1], 0.0, 10, 18) is None
