from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from gumiho_simulator.figures.theorem import (
    plot_gain_by_mass,
    plot_harmful_region,
    plot_largest_loss,
    plot_sensitivity,
)
from gumiho_theory import InputError, sensitivity
from gumiho_theory.theorem.boundary import move_effect
from gumiho_theory.theorem.cases import random_cases
from gumiho_theory.theorem.losses import largest_loss


def labels(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_gains_under_the_hypothesis_lie_above_zero_and_losses_without_it_reach_the_largest_one():
    rng = np.random.default_rng(0)
    ax = plot_gain_by_mass({depth: random_cases(depth, 20_000, rng) for depth in (3, 7)})
    gain_3, loss_3, gain_7, loss_7 = ax.lines[:4]
    for gain in (gain_3, gain_7):
        assert (gain.get_ydata() >= 0).all()
        assert (gain.get_xdata()[0], gain.get_ydata()[0]) == (0, 0)
        assert gain.get_xdata().max() > 0.5
    for loss, depth in ((loss_3, 3), (loss_7, 7)):
        assert np.isclose(loss.get_ydata().min(), -float(largest_loss(depth).loss), atol=1e-3)
    assert "tokens a cycle" in ax.get_ylabel()
    ax.figure.canvas.draw()


def test_the_median_gain_is_that_of_the_cases_of_its_interval():
    cases = random_cases(5, 20_000, np.random.default_rng(1))
    line = plot_gain_by_mass({5: cases}).lines[0]
    inside = (cases.mass() > 0.25) & (cases.mass() <= 0.3125)
    at = np.argmin(np.abs(line.get_xdata() - cases.mass()[inside].mean()))
    assert np.isclose(line.get_ydata()[at], np.median(cases.gain()[inside]))


def test_sensitivity_is_drawn_for_every_position_and_dotted_where_it_rises():
    rates = [0.81, 0.16, 0.99, 0.5]
    ax = plot_sensitivity({"dip": rates})
    assert [line.get_linestyle() for line in ax.lines[:3]] == [":", "-", "-"]
    np.testing.assert_allclose(ax.lines[3].get_ydata(), sensitivity(rates))
    assert labels(ax)[0] == "dip"
    ax.figure.canvas.draw()


def test_the_harmful_region_is_bounded_by_the_threshold():
    effect = move_effect("0.5,0.5,0.9,0.9", 2, 1)
    ax = plot_harmful_region(effect)
    t = float(effect.threshold)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[t, 0], [t, 1 - t], [1, 1 - t]])
    np.testing.assert_allclose(ax.lines[2].get_xydata(), [[t, 0], [1, 1 - t]])
    assert f"T = {t:.2f}" in [text.get_text() for text in ax.texts]
    change = ax.images[0].get_array()
    rate = np.linspace(0, 1, 401)
    loses = (rate[None, :] > t) & (rate[:, None] < 1 - t) & (rate[:, None] > 0) & (rate[None, :] < 1)
    assert np.array_equal(change < -1e-15, loses)
    ax.figure.canvas.draw()


def test_where_no_move_can_harm_no_region_is_drawn():
    for rates in ("0.5,0.5", "0.5,0,0.5"):
        ax = plot_harmful_region(move_effect(rates, len(rates.split(",")), 1))
        assert len(ax.lines) == 1
        ax.figure.canvas.draw()


def test_the_largest_loss_leaves_the_closed_form_at_fifteen():
    losses = [largest_loss(depth) for depth in range(3, 25)]
    ax = plot_largest_loss(losses)
    one_early, largest = ax.lines[1].get_ydata(), ax.lines[2].get_ydata()
    depth = np.array([loss.depth for loss in losses])
    assert np.array_equal(largest > one_early, depth >= 15)
    assert len(ax.lines[3].get_xdata()) == 12
    ax.figure.canvas.draw()


@pytest.mark.parametrize("count", [0, 6])
def test_more_series_than_there_are_colours_are_refused(count):
    with pytest.raises(InputError, match="rates"):
        plot_sensitivity({str(k): [0.5] for k in range(count)})
    with pytest.raises(InputError, match="cases"):
        plot_gain_by_mass({k + 2: random_cases(3, 5, np.random.default_rng(0)) for k in range(count)})


def test_figures_are_drawn_into_the_axes_given():
    _, ax = plt.subplots()
    assert plot_sensitivity({"x": [0.5, 0.5]}, ax) is ax
    assert plot_largest_loss([largest_loss(3)], ax) is ax
