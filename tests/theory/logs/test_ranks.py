"""Rank rates are counts over the positions that were at risk and ranked."""

from __future__ import annotations

import numpy as np
import pytest

from gumiho_theory import InputError, StaticTree, Trace, rank_rates


def row(cycle, ranks, accepted, *, q=0.5, censored=None, prompt="a"):
    drafted = len(ranks)
    reached = min(accepted + 1, drafted if censored is None else censored)
    qs = [q if i < reached else None for i in range(drafted)]
    return {
        "prompt_id": prompt,
        "turn": 0,
        "cycle": cycle,
        "position": 10 * cycle + 5,
        "drafted": drafted,
        "nodes": drafted + 1,
        "accepted": accepted,
        "committed": accepted + 1,
        "censored_at": censored,
        "rank": ranks,
        "q_draft": qs,
        "p_target": qs,
    }


def test_counts_by_hand():
    trace = Trace.from_rows(
        [
            row(0, [1, 2, None], 1),
            row(1, [3, None, None], 0),
            row(2, [1, 1, 7], 2),
            row(3, [1, None, None], 1, censored=1),
        ],
        {},
    )
    counted = rank_rates(trace, 3)
    assert counted.at_risk.tolist() == [4, 2, 1]
    assert counted.rates.tolist() == [[3 / 4, 0, 1 / 4], [1 / 2, 1 / 2, 0], [0, 0, 0]]


def test_positions_that_were_not_ranked_do_not_count():
    leaf = row(0, [1, None], 1)
    leaf["q_draft"] = [0.5, None]
    trace = Trace.from_rows([leaf, row(1, [1, 2], 1)], {})
    assert rank_rates(trace).at_risk.tolist() == [2, 1]


def test_a_token_that_was_no_candidate_at_all_counts_as_no_rank():
    trace = Trace.from_rows([row(0, [None], 0, q=0.0), row(1, [1], 1)], {})
    assert rank_rates(trace, 2).rates.tolist() == [[0.5, 0.0]]


def test_the_best_tree_of_measured_rates_spends_nodes_where_tokens_are():
    trace = Trace.from_rows(
        [row(i, [1 + (i % 3 == 0), *([1] if i % 3 else [None])], int(i % 3 != 0) * 2) for i in range(30)], {}
    )
    rates = rank_rates(trace, 3).rates
    assert StaticTree.best(rates, 4).paths == ((1,), (2,), (1, 1))


def test_a_trace_without_ranks_is_refused():
    bare = row(0, [1], 1)
    del bare["rank"]
    for trace in (Trace.from_rows([bare], {}), Trace.from_rows([], {})):
        with pytest.raises(InputError, match="rank"):
            rank_rates(trace)
    with pytest.raises(InputError, match="ranks"):
        rank_rates(Trace.from_rows([row(0, [1], 1)], {}), 0)
    assert np.isfinite(rank_rates(Trace.from_rows([row(0, [1], 1)], {})).rates).all()
