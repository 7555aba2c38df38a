"""The best static tree of a log: that of its rank rates, with the tau that they promise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from drafted_text import draw_texts, log_texts
from gumiho_simulator.replaying import best_tree, replay_trace
from gumiho_theory import StaticTree, rank_rates


def test_the_tree_is_the_best_by_the_log_s_rank_rates_and_its_file_names_the_log(tmp_path: Path) -> None:
    trace = replay_trace(log_texts(draw_texts(np.random.default_rng(4), 12, 60, spread=0.3), 3), "chain:3")
    best, rates = best_tree(trace, 6, 4), rank_rates(trace, 4).rates
    assert best.tree == StaticTree.best(rates, 6)
    expected = 0.0
    for path in best.tree.paths:
        expected += float(np.prod([rates[depth, rank - 1] for depth, rank in enumerate(path)]))
    assert best.to_json()["tau"] == pytest.approx(1 + expected)
    assert best.to_json()["nodes"] == 6
    best.write(tmp_path / "tree.json", Path("logs") / "trace.parquet")
    facts = json.loads((tmp_path / "tree.json").read_text(encoding="utf-8"))["made_from"]
    assert facts["file"] == "trace.parquet" and facts["prompts"] == len(trace.prompts)
