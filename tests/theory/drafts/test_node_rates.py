from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gumiho_theory import DraftTree, InputError
from gumiho_theory.drafts.node_rates import reached, read_node_rates

TREE = DraftTree.from_rank_paths([[1], [2], [1, 1]])


def test_rates_stay_exact_or_become_float64_and_the_root_s_is_1() -> None:
    third = Fraction(1, 3)
    exact = read_node_rates(TREE.parents, [0, third, 2 * third, third])
    assert exact.dtype == object and list(exact) == [1, third, 2 * third, third]
    assert list(reached(TREE.parents, exact)) == [1, third, 2 * third, third**2]
    floats = read_node_rates(TREE.parents, [0, 0.5, 0.5 + 1e-10, 1])
    assert floats.dtype == np.float64 and floats[0] == 1.0
    assert reached(TREE.parents, floats)[-1] == 0.5


@pytest.mark.parametrize(
    "rates, message",
    [
        ([1, 0.5], "4 rates, one a node"),
        ([1, 0.5, 1.5, 0], "node rates, node 2: found 1.5"),
        ([1, 0.5, float("nan"), 0], "node rates, node 2: found nan"),
        ([1, 0.5, 0.6, 0], "children of node 0: found a sum of 1.1, wanted at most 1"),
        ([1, Fraction(1, 2), Fraction(1, 2) + Fraction(1, 10**12), 0], "children of node 0"),
        (["a", "b", "c", "d"], "numbers, all of one kind"),
    ],
)
def test_what_are_no_rates_of_nodes_is_refused(rates: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_node_rates(TREE.parents, rates)
