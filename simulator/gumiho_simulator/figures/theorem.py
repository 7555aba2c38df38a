"""Figures of the early-token theorem: what moving acceptance rate earlier gains, and where it does harm.

Rates are conditional; gains and losses are of E[L], in tokens a cycle, and the same for tau: the bonus token cancels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gumiho_simulator.figures.axes import BLUE, INK, MUTED, ORANGE, SERIES, legend_above, new_axes
from gumiho_theory import InputError, sensitivity
from gumiho_theory.theorem.boundary import MoveEffect, first_order_criterion
from gumiho_theory.theorem.cases import Cases
from gumiho_theory.theorem.losses import LargestLoss, one_early_loss
from gumiho_theory.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours of series that stand in an order, such as D, from few to many.
_ORDERED = ("#7fb8d8", "#3e93c4", "#0173b2", "#0b4f7d", "#0a2c47")
_MOST = 5  # series of rates
_BINS = 16
_FEWEST = 30  # cases of an interval that is drawn
_ROOMY = 0.55  # a threshold below which the regions have room for their names


def plot_gain_by_mass(admissible: Mapping[int, Cases], ax: Axes | None = None) -> Axes:
    """Draw the gain in E[L] against the rate moved, by D: with the theorem's hypothesis, and without.

    Parameters
    ----------
    admissible : mapping of D to Cases
        Random cases that meet the hypothesis, for up to five D. Solid lines are their median gain. For the same D,
        dashed lines are what is lost by (1-z, z, 1, ..., 1) -> (1, 0, 1, ..., 1), which does not meet it:
        z ((D-1)(1-z) - 1), at its peak the largest possible loss for D <= 14.

    Raises
    ------
    InputError
        When there is no D, or more than five.
    """
    ax = ax or new_axes(7.2, 4.8)
    if not 1 <= len(admissible) <= len(_ORDERED):
        raise InputError("cases", f"{len(admissible)} values of D", f"1..{len(_ORDERED)}")
    for (depth, cases), colour in zip(sorted(admissible.items()), _ORDERED[-len(admissible) :], strict=True):
        mass, gain = _medians(cases)
        ax.plot(mass, gain, color=colour, linewidth=2, label=f"D = {depth}")
        z = np.linspace(0, (depth - 2) / (depth - 1), 101)
        ax.plot(z, -z * ((depth - 1) * (1 - z) - 1), color=colour, linewidth=1.6, linestyle=(0, (4, 2)))
    ax.axhline(0, color=INK, linewidth=1)
    ax.plot([], [], color=MUTED, linewidth=2, label="hypothesis holds: median of random changes")
    without = "it does not: (1−z, z, 1, …, 1) → (1, 0, 1, …, 1)"
    ax.plot([], [], color=MUTED, linewidth=1.6, linestyle=(0, (4, 2)), label=without)
    ax.set(xlabel="rate z moved from late to early positions, in all", ylabel="gain in E[L] (tokens a cycle)")
    ax.set_xlim(0, 1)
    lines, labels = ax.get_legend_handles_labels()
    by_depth = ax.legend(lines[:-2], labels[:-2], loc="upper left", frameon=False)
    ax.legend(lines[-2:], labels[-2:], loc="lower left", bbox_to_anchor=(0, 1), frameon=False, borderaxespad=0.2)
    ax.add_artist(by_depth)
    return ax


def plot_sensitivity(rates: Mapping[str, Sequence[float] | FloatArray], ax: Axes | None = None) -> Axes:
    """Draw what a better rate is worth, d tau / d p_i, by position.

    A segment is dotted where the worth rises to the next position, against the theorem's order.

    Parameters
    ----------
    rates : mapping of str to array [D]
        Conditional rates, each under its name; up to five.
    """
    ax = ax or new_axes(7.2, 4.2)
    if not 1 <= len(rates) <= _MOST:
        raise InputError("rates", f"{len(rates)} lists", f"1..{_MOST}")
    deepest = 0
    for (name, values), (colour, marker) in zip(rates.items(), SERIES, strict=False):
        worth = sensitivity(np.asarray(values))
        position = np.arange(1, worth.size + 1)
        deepest = max(deepest, worth.size)
        rises = first_order_criterion(np.asarray(values)) > 1
        for k in range(worth.size - 1):
            line = ":" if rises[k] else "-"
            ax.plot(position[k : k + 2], worth[k : k + 2], line, color=colour, linewidth=1.8)
        ax.plot(position, worth, marker, color=colour, markersize=6, label=name)
    ax.set(xlabel="draft position i", ylabel="∂τ / ∂p$_i$ (tokens a cycle per unit of rate)")
    ax.set_ylim(bottom=0)
    ax.set_xticks(np.arange(1, deepest + 1))
    ax.plot([], [], ":", color=MUTED, linewidth=1.8, label="the next position is worth more")
    legend_above(ax, columns=2)
    return ax


def plot_harmful_region(effect: MoveEffect, ax: Axes | None = None) -> Axes:
    """Draw where moving rate from one position to an earlier one does harm, over the two rates.

    Colour is the change of E[L] when as much is moved as fits. Thick lines bound the exact regions: inside the
    rectangle that move loses, below the slanted line every smaller move loses too. On the dashed diagonal both rates
    are equal.

    Parameters
    ----------
    effect : MoveEffect
        From `gumiho_theory.theorem.boundary.move_effect`.
    """
    from matplotlib.colors import TwoSlopeNorm

    ax = ax or new_axes(6.4, 5.2)
    rate = np.linspace(0, 1, 401)
    change = effect.change(rate[None, :], rate[:, None])
    # Gains reach further than losses, which are the subject: the scale ends where half of the gains do.
    reach = max(-1.4 * float(change.min()), float(change.max()) / 2)
    norm = TwoSlopeNorm(0, -reach, reach)
    image = ax.imshow(change, cmap="PuOr", norm=norm, origin="lower", extent=(0, 1, 0, 1), interpolation="bilinear")
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, extend="max")
    bar.set_label("change of E[L] by the largest move (tokens a cycle)")
    bar.outline.set_visible(False)
    ax.plot([0, 1], [0, 1], "--", color=MUTED, linewidth=1)
    a, b = effect.destination, effect.source
    equal = f"p$_{{{a}}}$ = p$_{{{b}}}$"
    ax.text(0.08, 0.11, equal, color=MUTED, rotation=45, rotation_mode="anchor", transform_rotates_text=True)
    if effect.threshold is not None and effect.threshold < 1:
        t = float(effect.threshold)
        ax.plot([t, t, 1], [0, 1 - t, 1 - t], color=INK, linewidth=1.8)
        ax.plot([t, 1], [0, 1 - t], color=INK, linewidth=1.8)
        ax.text(t - 0.015, 0.02, f"T = {t:.2f}", ha="right", color=INK)
        if t < _ROOMY:
            for x, y, text in (
                ((t + 2) / 3, (1 - t) / 3, "every move\nloses"),
                ((2 * t + 1) / 3, 2 * (1 - t) / 3, "the largest\nmove loses"),
                (0.5, 1 - t / 2, "every move gains"),
            ):
                patch = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "boxstyle": "round,pad=0.25"}
                ax.text(x, y, text, ha="center", va="center", color=INK, bbox=patch)
    ax.set(xlabel=f"p$_{{{a}}}$, the earlier rate", ylabel=f"p$_{{{b}}}$, the later rate", xlim=(0, 1), ylim=(0, 1))
    ax.grid(False)
    return ax


def plot_largest_loss(losses: Sequence[LargestLoss], ax: Axes | None = None) -> Axes:
    """Draw the largest possible loss without the hypothesis, by D, per later token: L(D) / (D - 1).

    Parameters
    ----------
    losses : sequence of LargestLoss
        For some values of D, ascending.
    """
    from matplotlib.ticker import NullLocator

    ax = ax or new_axes(7.2, 4.4)
    depth = np.array([loss.depth for loss in losses])
    share = np.array([float(loss.loss) for loss in losses]) / (depth - 1)
    one_early = np.array([float(one_early_loss(int(d))) for d in depth]) / (depth - 1)
    ax.axhline(1 / np.e, color=MUTED, linewidth=1.2)
    ax.text(depth[0], 1 / np.e, " 1/e, never exceeded", va="bottom", color=MUTED)
    ax.plot(depth, one_early, "--", color=ORANGE, linewidth=1.8, label="one early position, (D−2)² / 4(D−1)")
    ax.plot(depth, share, "-", color=BLUE, linewidth=1.4)
    several = np.array([loss.case.early > 1 for loss in losses], dtype=bool)
    for chosen, fill, label in (
        (~several, BLUE, "largest loss: one early position"),
        (several, "white", "two or more"),
    ):
        ax.plot(depth[chosen], share[chosen], "o", color=BLUE, markerfacecolor=fill, markersize=5, label=label)
    ax.set(xlabel="draft positions D", ylabel="largest loss of E[L], over D − 1", xscale="log", ylim=(0, 0.42))
    ticks = [d for d in (2, 3, 5, 7, 10, 14, 20, 30, 50, 100, 200, 512) if depth[0] <= d <= depth[-1]]
    ax.set_xticks(ticks, [str(d) for d in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.legend(loc="lower right", frameon=False)
    return ax


def _medians(cases: Cases) -> tuple[FloatArray, FloatArray]:
    """Mean mass and median gain in intervals of mass moved, from (0, 0) on; intervals of few cases left out."""
    mass, gain = cases.mass(), cases.gain()
    which = np.ceil(mass * _BINS)
    groups = [which == k for k in range(1, _BINS + 1) if (which == k).sum() >= _FEWEST]
    means, medians = [mass[g].mean() for g in groups], [np.median(gain[g]) for g in groups]
    return np.array([0.0, *means]), np.array([0.0, *medians])
