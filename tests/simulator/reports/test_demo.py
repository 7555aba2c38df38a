"""The report: every figure and number on one offline page, nothing unescaped, all or nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from gumiho_simulator import DemoSummary, NearTie, TreeDrawing, validate, write_report
from gumiho_simulator.reports.demo import cycle_times, inline_svg
from gumiho_theory import DraftTree, InputError, Trace

MakeTrace = Callable[..., Trace]
FIGURES = ("rates_by_position", "accepted_length", "cycle_time", "draft_tree")


@pytest.fixture(scope="module")
def summary() -> DemoSummary:
    tree = DraftTree.best_first(np.full((4, 3), [0.6, 0.2, 0.1]), 20)
    return DemoSummary(
        title="Tiny <demo> & more",
        target="tiny",
        drafter="tiny:gumiho",
        structure="chain:7",
        prompts=64,
        lossless={"checked": 64, "equal": 63, "ties": 1, "different": 0},
        tau=3.8,
        tau_ci=(3.6, 4.0),
        near_ties=(NearTie("<script>alert(1)</script>", 57, 1.2e-5),),
        tau_first_32=3.41,
        speedup_plain=1.31,
        speedup_generate=2.24,
        tokens_per_second=690.0,
        plain_tokens_per_second=527.0,
        plain_step_ms=1.9,
        repeated_4gram_share=0.412,
        drawing=TreeDrawing(tree, tuple(f"<t{i}>$" for i in range(20)), (1,), np.full(20, 0.5), "cycle 3"),
        provenance={"arguments": "gumiho demo </td>", "device": "cpu"},
    )


class Checker(HTMLParser):
    """Collect what a page would fetch and check that its elements close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and value and not value.startswith("#"):
                self.fetched.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_holds_every_figure_and_fetches_nothing(trace: Trace, summary: DemoSummary, tmp_path: Path) -> None:
    page = write_report(tmp_path / "new" / "report", trace, validate(trace), summary)
    text = page.read_text()
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert checker.fetched == []
    assert checker.tags.count("svg") == 4
    assert "script" not in checker.tags
    assert "url(http" not in text
    for name in FIGURES:
        assert f'id="{name}"' in text
        root = ElementTree.parse(page.parent / "figures" / f"{name}.svg").getroot()
        assert root.tag.endswith("svg")
    assert "Tiny &lt;demo&gt; &amp; more" in text
    assert "&lt;script&gt;" in text
    assert "demo &lt;/td&gt;" in text


def test_the_page_shows_the_numbers_it_was_given(trace: Trace, summary: DemoSummary, tmp_path: Path) -> None:
    done = validate(trace)
    text = write_report(tmp_path, trace, done, summary).read_text()
    plain = " ".join(re.sub(r"<svg.*?</svg>|<style.*?</style>|<[^>]+>", " ", text, flags=re.DOTALL).split())
    row = done.rows[0]
    for wanted in (
        "63 / 64",
        "1 near-tie, 0 different",
        "1.20e-05",
        "1.31×",
        "2.24×",
        "41.2 %",
        f"{row.predicted:.3f} [{row.lo:.3f}, {row.hi:.3f}]",
        f"{row.measured:.3f}",
        f"{100 * row.relative_error:+.1f} %",  # type: ignore[operator]
        f"{trace.n_cycles:,} cycles",
    ):
        assert wanted in plain, wanted


def test_a_difference_is_reported_as_a_difference(trace: Trace, summary: DemoSummary, tmp_path: Path) -> None:
    bad = {"checked": 64, "equal": 60, "ties": 1, "different": 3}
    text = write_report(tmp_path, trace, validate(trace), replace(summary, lossless=bad)).read_text()
    assert '<span class="bad">No.</span> 3 of 64' in text
    assert '<span class="good">Yes' not in text


def test_what_was_not_measured_is_left_out_or_dashed(traces: MakeTrace, summary: DemoSummary, tmp_path: Path) -> None:
    trace = traces(np.random.default_rng(1), prompts=6)
    nothing = np.full(trace.n_cycles, np.nan)
    trace = replace(trace, draft_seconds=nothing, verify_seconds=nothing, other_seconds=nothing)
    bare = DemoSummary("t", "a", "b", "chain:7", 6, dict.fromkeys(summary.lossless, 0), None, None)
    text = write_report(tmp_path, trace, validate(trace), bare).read_text()
    assert "Not checked" in text
    assert 'id="cycle_time"' not in text
    assert 'id="draft_tree"' not in text
    words = re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)
    assert re.search(r"\b(nan|None)\b", words) is None


def test_equal_data_give_equal_files(trace: Trace, summary: DemoSummary, tmp_path: Path) -> None:
    done = validate(trace)
    first = write_report(tmp_path / "a", trace, done, summary)
    second = write_report(tmp_path / "b", trace, done, summary)
    assert first.read_bytes() == second.read_bytes()


def test_a_folder_that_cannot_be_written_is_an_input_error_and_keeps_what_is_there(
    trace: Trace, summary: DemoSummary, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("kept")
    done = validate(trace)
    with pytest.raises(InputError, match="file"):
        write_report(tmp_path / "file", trace, done, summary)
    assert (tmp_path / "file").read_text() == "kept"
    (tmp_path / "index.html").mkdir()
    with pytest.raises(InputError, match=r"index\.html"):
        write_report(tmp_path, trace, done, summary)


def test_times_are_means_over_measured_cycles_with_limits_around_them(trace: Trace) -> None:
    seconds = trace.draft_seconds.copy()
    seconds[::3] = np.nan
    times = cycle_times(replace(trace, draft_seconds=seconds), seed=0)
    assert times["draft"][0] == pytest.approx(1000 * np.nanmean(seconds))
    for mean, low, high in times.values():
        assert low < mean < high
    assert set(cycle_times(replace(trace, other_seconds=np.full(trace.n_cycles, np.nan)), 0)) == {
        "draft",
        "verify",
    }


def test_an_inlined_figure_takes_the_page_s_colours_and_its_label_is_escaped() -> None:
    group = '<g style="fill: #1c2024"/>'
    svg = f'<?xml version="1.0"?>\n<svg xmlns="x" width="10pt" height="5pt" viewBox="0 0 10 5">{group}</svg>'
    markup = inline_svg(svg, 'a "b"')
    assert markup.startswith('<svg role="img" aria-label="a &#34;b&#34;"')
    assert "var(--ink)" in markup
    assert 'height="5pt"' not in markup
    assert "viewBox" in markup
