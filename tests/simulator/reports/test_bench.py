"""A bench's figures and tables show its rows, whatever is missing in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt

from gumiho_simulator.figures.bench import plot_bench
from gumiho_simulator.reports.bench import bench_page, bench_svg, grouped, rows_csv, show_bench, write_bench_report


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


def row(drafter: str, structure: str, tau: float | None, **changes: Any) -> dict[str, Any]:
    limits = {"tau_lo": tau and tau - 0.25, "tau_hi": tau and tau + 0.5, "speedup": tau and tau / 2}
    limits |= {"speedup_lo": None, "speedup_hi": None, "speedup_generate": tau, "draft_ms": 1.0, "verify_ms": 2.0}
    head = {"drafter": drafter, "structure": structure, "calibrated": False, "prompts": "qa.jsonl", "temperature": 0.0}
    counts = {"checked": 9, "equal": 8, "ties": 1, "different": 0}
    last = {"n_prompts": 9, "tau_first": tau, "first": 32, "lossless": counts, "error": None if tau else "too deep"}
    return head | {"tau": tau} | limits | last | changes


ROWS = [
    row("a", "chain:3", 2.0),
    row("a", "tree:total=16,top_k=4,depth=7,mlp_topk=4", 3.0),
    row("a", "tree:total=16,top_k=4,depth=7,mlp_topk=4", 3.5, calibrated=True),
    row("b", "chain:3", 2.5),
    row("b", "chain:9", None, lossless=None),
]


def test_what_is_drawn_is_the_rows_with_their_limits() -> None:
    ax = plot_bench(ROWS, "tau")
    first, second = ax.containers
    np.testing.assert_allclose(np.array(first[0].get_xdata(), float), [2.0, 3.0, 3.5])
    segments = first[2][0].get_segments()
    np.testing.assert_allclose([s[:, 0] for s in segments], [[1.75, 2.5], [2.75, 3.5], [3.25, 4.0]])
    np.testing.assert_allclose(np.array(second[0].get_xdata(), float), [2.5])
    # A calibrated tree has a line of its own; what was not measured keeps its line.
    assert [round(y) for y in first[0].get_ydata()] == [0, 1, 2]
    labels = [" ".join(label.get_text().split()) for label in ax.get_yticklabels()]
    assert labels[2].endswith("calibrated")
    assert labels[3] == "chain:9"


def test_a_single_prompt_has_no_limits_to_draw() -> None:
    ax = plot_bench(ROWS[:1], "speedup")
    assert [np.ptp(s[:, 0]) for s in ax.containers[0][2][0].get_segments()] == [0.0]


def test_equal_rows_give_equal_figures_with_a_panel_a_file_and_temperature() -> None:
    rows = [r | {"prompts": p, "temperature": t} for p in ("qa.jsonl", "sum.jsonl") for t in (0.0, 1.0) for r in ROWS]
    svg = bench_svg(rows, "tau")
    assert svg == bench_svg(rows, "tau")
    assert sum(f'id="axes_{i}"' in svg for i in range(1, 6)) == 4


def test_the_csv_holds_every_value_and_nothing_for_null() -> None:
    read = list(csv.DictReader(io.StringIO(rows_csv(ROWS))))
    assert [r["tau"] for r in read] == ["2.0", "3.0", "3.5", "2.5", ""]
    assert [r["lossless_ties"] for r in read] == ["1", "1", "1", "1", ""]
    assert "lossless" not in read[0]


def test_the_report_is_a_page_that_needs_nothing_from_elsewhere_and_its_table_and_figures(tmp_path) -> None:
    write_bench_report(tmp_path / "new" / "report", ROWS)
    names = sorted(p.name for p in (tmp_path / "new" / "report").iterdir())
    assert names == ["index.html", "rows.csv", "speedup.svg", "tau.svg"]
    page = (tmp_path / "new" / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert not re.search(r'(src|href)="https?://|@import|url\((?!#)', page)


def test_the_page_says_what_each_row_measured_and_sums_the_comparisons_up() -> None:
    page = bench_page(ROWS, grouped(ROWS), {})
    assert "32 / 36" in page and "4 near-ties, 0 different" in page  # of four rows that were measured
    assert "1.75×" in page and "not measured: too deep" in page
    assert page.count("<tr>") == 1 + len(ROWS)


def test_what_a_row_names_is_shown_as_text_and_not_as_markup() -> None:
    page = bench_page([row("<b>x</b>", "chain:3", 2.0)], {("<i>.jsonl", 0.0): [row("<b>x</b>", "chain:3", 2.0)]}, {})
    assert "<b>x" not in page and "&lt;b&gt;x" in page and "<i>" not in page


def test_people_read_what_was_measured_and_what_was_not(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    show_bench(ROWS)
    out = capsys.readouterr().out
    assert "8/9, 1 ties" in out
    assert "[1.75, 2.50]" in out
    assert "not measured: b: too deep" in out
