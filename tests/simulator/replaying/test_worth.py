"""What a perfect head at one position would give: a plain loop over edited logs finds the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from typer.testing import CliRunner

from gumiho_simulator.commands.structures.importance import importance as command
from gumiho_simulator.figures.importance import plot_importance
from gumiho_simulator.replaying.worth import importance, never_wrong
from gumiho_theory import EveryPositionLog, InputError

FACTS = {"top_k": 1, "temperature": 0.0, "candidates": "top", "stop_ids": [], "structures": ["chain:3"]}
NAMES = "abcdefgh"


def log_of(rng: np.random.Generator, rates: tuple[float, ...], tokens: int) -> EveryPositionLog:
    """Independent positions that are right with these rates, behind every place of texts that never stop."""
    rows: list[dict[str, Any]] = []
    depth = len(rates)
    for name in NAMES:
        for number in range(1, tokens + 1):
            right = rng.random(depth) < rates
            accepted = int(np.argmin(right)) if not right.all() else depth
            rows.append(
                {
                    **{"prompt_id": name, "task": None, "turn": 0, "position": number, "drafted": depth},
                    "stop_reason": "length" if number == tokens else None,
                    **{"true_token": [0] * depth, "rank": [1 if ok else 2 for ok in right]},
                    **{"q_draft": [0.5 if ok else 0.1 for ok in right], "top_q": [[0.5]] * depth},
                    **{"accepted": [accepted], "censored": [0]},
                }
            )
    facts = FACTS | {"structures": [f"chain:{depth}"]}
    return EveryPositionLog.from_rows(rows, facts)


def tau_by_loop(log: EveryPositionLog, perfect: int | None) -> float:
    lengths = []
    for name in NAMES:
        rows = np.flatnonzero(log.prompt_id == name)
        at = 0
        while at < len(rows) - 1:
            length = 0
            while length < log.depth and (log.rank[rows[at], length] == 1 or length + 1 == perfect):
                length += 1
            lengths.append(length)
            at += length + 1
    return 1 + float(np.mean(lengths))


@given(st.integers(0, 2**32), st.lists(st.floats(0.1, 0.9), min_size=2, max_size=4))
@settings(max_examples=25, deadline=None)
def test_each_position_s_tau_is_that_of_a_walk_with_its_errors_taken_away(seed: int, rates: list[float]) -> None:
    log = log_of(np.random.default_rng(seed), tuple(rates), 30)
    found = importance(log)
    assert [row.position for row in found] == list(range(1, log.depth + 1))
    for row in found:
        assert row.tau == pytest.approx(tau_by_loop(log, row.position))
        assert row.gain == pytest.approx(row.tau - tau_by_loop(log, None))


def test_with_independent_positions_the_gain_is_the_closed_form_s() -> None:
    rates = (0.5, 0.6, 0.7)
    log = log_of(np.random.default_rng(1), rates, 4000)

    def expected(p: tuple[float, ...]) -> float:
        return 1 + float(np.cumprod(p).sum())

    for row in importance(log):
        perfect = tuple(1.0 if i + 1 == row.position else rate for i, rate in enumerate(rates))
        gain = expected(perfect) - expected(rates)
        assert row.gain == pytest.approx(gain, abs=0.05)
        assert row.lo < gain < row.hi or abs(row.gain - gain) < 0.05
        # Errors at a position are what survives to it and fails there.
        share = float(np.prod(rates[: row.position - 1])) * (1 - rates[row.position - 1])
        assert row.per_error == pytest.approx(gain / share, abs=0.1)


def test_a_head_that_never_errs_already_gains_nothing() -> None:
    log = log_of(np.random.default_rng(2), (0.5, 1.0), 50)
    last = importance(log)[1]
    assert (last.gain, last.per_error) == (0.0, None)


def test_accepted_lengths_of_the_log_itself_are_not_taken_for_the_better_head_s() -> None:
    log = log_of(np.random.default_rng(3), (0.2, 0.5), 40)
    edited = never_wrong(log, 1)
    assert edited.structures == () and (edited.rank[:, 0] == 1).all()
    assert (log.rank[:, 0] != 1).any()  # the log itself is left as it was


def test_one_prompt_has_no_interval_and_is_refused() -> None:
    log = log_of(np.random.default_rng(4), (0.5, 0.5), 10)
    rows = log.prompt_id == "a"
    few = EveryPositionLog(
        **{
            name: getattr(log, name)[rows] for name in log.__dataclass_fields__ if name not in ("provenance", "missing")
        },
        provenance=log.provenance,
    )
    with pytest.raises(InputError, match="found 1, wanted at least 2"):
        importance(few)


def test_the_command_writes_table_json_and_figure(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    log_of(np.random.default_rng(5), (0.5, 0.6), 40).write(path)
    app = typer.Typer()
    app.command()(command)
    shown = CliRunner().invoke(app, [str(path), "--figure", str(tmp_path / "gain.svg")])
    assert shown.exit_code == 0 and "bonus included" in shown.output
    assert (tmp_path / "gain.svg").read_text().startswith("<?xml")
    told = CliRunner().invoke(app, [str(path), "--json"])
    assert '"position": 2' in told.output


def test_the_figure_draws_the_gains_at_their_positions() -> None:
    found = importance(log_of(np.random.default_rng(6), (0.5, 0.6, 0.4), 40))
    ax = plot_importance({"a": found}, Figure().subplots())
    line = ax.containers[0][0]
    assert line.get_xdata() == pytest.approx([1, 2, 3])
    assert line.get_ydata() == pytest.approx([row.gain for row in found])
    assert ax.get_legend() is None
