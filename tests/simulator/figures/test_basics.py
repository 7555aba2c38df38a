"""The figures: what is drawn is the data, and trees stay legible and connected."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from gumiho_simulator.figures.basics import plot_cycle_time, plot_length_distribution, plot_rates
from gumiho_simulator.figures.trees import kept_nodes, plot_draft_tree, token_text, tree_figure_size
from gumiho_simulator.forecasting.intervals import Interval, pmf_intervals, rate_intervals
from gumiho_simulator.forecasting.judged import lengths_by_prompt
from gumiho_theory import DraftTree, InputError, Trace


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_rates_are_drawn_with_their_intervals(trace: Trace) -> None:
    conditional, survival = rate_intervals(trace.counts_by_prompt(), np.random.default_rng(0))
    ax = plot_rates(conditional, survival)
    drawn = ax.containers[0]
    np.testing.assert_allclose(drawn[0].get_ydata(), conditional.estimate)
    segments = drawn[2][0].get_segments()
    np.testing.assert_allclose([s[:, 1] for s in segments], np.stack([conditional.low, conditional.high], 1))
    assert "draft position" in ax.get_xlabel()
    assert "conditional" in ax.get_legend().get_texts()[0].get_text()


def test_positions_without_an_interval_are_drawn_without_one() -> None:
    nothing = np.full(2, np.nan)
    rates = Interval(np.array([0.5, np.nan]), nothing, nothing)
    ax = plot_rates(rates, rates)
    ax.figure.canvas.draw()
    heights = [np.ptp(s[:, 1]) for s in ax.containers[0][2][0].get_segments() if s.size]
    assert heights == [0.0]


def test_lengths_are_drawn_forecast_beside_measured(trace: Trace) -> None:
    measured = pmf_intervals(lengths_by_prompt(trace, 7), np.random.default_rng(0), n_resamples=200)
    ax = plot_length_distribution([0.5, 0.5], measured)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], measured.estimate)
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), [0.5, 0.5])


def test_a_cycle_s_parts_lie_end_to_end_beside_plain_decoding() -> None:
    ax = plot_cycle_time({"draft": (2, 1.9, 2.1), "verify": (3, np.nan, np.nan)}, 1.5, 4.0)
    spans = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    assert spans == [(0, 2), (2, 3), (0, 1.5), (0, 6.0)]
    assert texts(ax) == ["5.00 ms", "1.50 ms", "6.00 ms"]
    assert "milliseconds" in ax.get_xlabel()
    assert len(plot_cycle_time({"draft": (2, 1, 3)}, None, None).patches) == 1


@given(st.integers(1, 80), st.integers(1, 40), st.integers(0, 2**32))
def test_kept_nodes_hold_the_path_and_every_parent(n: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = DraftTree(np.array([-1, *(int(rng.integers(0, i)) for i in range(1, n))]))
    path = set(tree.path_to(int(rng.integers(0, n)))) | {0}
    for q in (None, rng.random(n)):
        kept = kept_nodes(tree, path, q, most)
        assert path <= set(kept)
        assert len(kept) == min(n, max(most, len(path)))
        assert all(int(tree.parents[node]) in kept for node in kept[1:])


def test_a_tree_of_sixty_nodes_is_pruned_and_says_how_many_are_hidden() -> None:
    tree = DraftTree.best_first(np.full((5, 6), [0.5, 0.2, 0.1, 0.08, 0.05, 0.03]), 60)
    q = np.full(60, 0.3)
    ax = plot_draft_tree(tree, [f"t{i}" for i in range(60)], [1], q)
    names = [text for text in texts(ax) if text.startswith("t")]
    hidden = [int(text[1:]) for text in texts(ax) if text.startswith("+")]
    assert len(names) == 30
    assert sum(hidden) == 30
    width, height = tree_figure_size(tree, [1], q)
    assert width < 12
    assert height < 15
    bold = [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"]
    assert bold == ["t0", "t1"]


def test_chains_and_lone_roots_are_drawn() -> None:
    assert "x" in texts(plot_draft_tree(DraftTree.chain(7), ["x"] * 8, range(1, 4)))
    assert "x" in texts(plot_draft_tree(DraftTree.chain(0), ["x"]))


def test_labels_and_nodes_that_do_not_fit_the_tree_are_refused() -> None:
    tree = DraftTree.chain(2)
    with pytest.raises(InputError, match="labels"):
        plot_draft_tree(tree, ["x"] * 2)
    with pytest.raises(InputError, match="q_draft"):
        plot_draft_tree(tree, ["x"] * 3, q_draft=np.ones(2))
    with pytest.raises(InputError, match="accepted"):
        plot_draft_tree(tree, ["x"] * 3, [3])


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" the", "␣the"),
        (":\n", ":⏎"),
        ("", "∅"),
        ("\x00", "�"),
        ("$x$", r"\$x\$"),
        ("abcdefghijkl", "abcde…kl"),
        (" \n  ", "␣⏎␣␣"),
    ],
)
def test_token_text_is_visible_and_short(token: str, shown: str) -> None:
    assert token_text(token) == shown
