"""The prompt mixture against numerical integration, and prompts whose difficulty is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from drafted_text import trace_of
from gumiho_simulator.acceptance import HazardModel, MixtureModel, Observations
from gumiho_theory import AcceptanceCounts, Trace, tau


def drafted(prompts: int, length: int, spread: float, tokens: int = 100) -> Trace:
    """Cycles of prompts that differ by a normal shift, each prompt the same number of tokens long."""
    rng = np.random.default_rng(2)
    outputs = []
    for shift in rng.normal(0, spread, prompts):
        rate = 1 / (1 + np.exp(-(0.8 + shift)))
        lengths: list[int] = []
        while sum(lengths) + len(lengths) < tokens:
            won = rng.random(length) < rate
            lengths.append(length if won.all() else int(won.argmin()))
        outputs.append(lengths)
    return trace_of(outputs, length)


def test_the_likelihood_is_the_integral_over_the_shift() -> None:
    counts = AcceptanceCounts(
        ("a", "b"),
        np.array([9, 5]),
        np.array([8, 5]),
        np.array([9, 5]),
        np.array([[9, 6], [5, 3]]),
        np.array([[6, 2], [3, 2]]),
    )
    model = MixtureModel(Observations(counts), np.array([0.4, -0.2]), 0.7)
    expected = 0.0
    for risk, hit in zip(counts.at_risk, counts.accepted, strict=True):  # type: ignore[arg-type]

        def density(u: float, risk: np.ndarray = risk, hit: np.ndarray = hit) -> float:
            p = 1 / (1 + np.exp(-(model.levels + u)))
            return float(np.prod(p**hit * (1 - p) ** (risk - hit)) * norm.pdf(u, scale=0.7))

        expected += np.log(quad(density, -6, 6)[0])
    assert model.log_likelihood(model.observed) == pytest.approx(expected, abs=1e-6)


def test_the_spread_of_prompts_is_found_and_none_is_nearly_none() -> None:
    assert MixtureModel.fit(Observations.of(drafted(120, 3, 0.6))).spread == pytest.approx(0.6, abs=0.15)
    assert MixtureModel.fit(Observations.of(drafted(60, 3, 0.0))).spread < 0.25


def test_hard_prompts_take_more_cycles_at_longer_drafts() -> None:
    model = MixtureModel.fit(Observations.of(drafted(100, 3, 0.8)))
    hazard = HazardModel(Observations(model.counts))
    np.testing.assert_allclose(model.conditional(3), hazard.conditional(3), rtol=1e-12)
    # Short drafts go easier on the hard prompts' share of all cycles than the logged ones did.
    assert model.conditional(1)[0] > hazard.conditional(1)[0] + 0.005
    for length in (1, 7):
        measured = drafted(100, length, 0.8, tokens=400).tau()
        assert float(tau(model.conditional(length))) == pytest.approx(measured, rel=0.03)


def test_refits_to_equal_weights_are_the_fit() -> None:
    model = MixtureModel.fit(Observations.of(drafted(20, 3, 0.5)))
    for length in (0, 2, 3, 5):
        refits = model.refitted(np.ones((2, 20)), length)
        assert refits.shape == (2, length)
        np.testing.assert_allclose(refits[1], model.conditional(length), rtol=1e-12)
