"""What dynamic trees promised beside what they gave: the sum of calibrated path probabilities is a forecast of tau."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gumiho_simulator.forecasting.intervals import ratio_interval
from gumiho_theory import Trace
from gumiho_theory.logs.schema import group_codes


@dataclass(frozen=True)
class ExpectedTau:
    """Forecast and measured tau of the same cycles; bonus included, micro, over complete cycles with a forecast.

    `expected` is 1 + the mean of ``expected_accepted``, `measured` 1 + the mean accepted length. `lo`, `hi` are 95 %
    limits of expected - measured, prompts resampled, each with both its numbers; None with fewer than two prompts.
    Scores are calibrated where the limits hold 0.
    """

    expected: float
    measured: float
    lo: float | None
    hi: float | None

    @property
    def error_ci(self) -> tuple[float, float] | None:
        """The limits, where there are any."""
        return None if self.lo is None or self.hi is None else (self.lo, self.hi)


def expected_tau(trace: Trace, generator: np.random.Generator, n_resamples: int = 2000) -> ExpectedTau | None:
    """Compare the accepted lengths that a trace's dynamic trees expected with those they had.

    None where no complete cycle has an ``expected_accepted``: chains, static trees, older traces.
    """
    known = trace.complete & ~np.isnan(trace.expected_accepted)
    if not known.any():
        return None
    prompt = group_codes(trace.prompt_id[known])
    expected, accepted, cycles = (
        np.bincount(prompt, weights=weights)
        for weights in (trace.expected_accepted[known], trace.accepted[known], np.ones(len(prompt)))
    )
    apart = expected - accepted
    taus = 1 + float(expected.sum() / cycles.sum()), 1 + float(accepted.sum() / cycles.sum())
    lo, hi = ratio_interval(apart, cycles, generator, n_resamples, least=-np.inf) or (None, None)
    return ExpectedTau(*taus, lo, hi)
