"""Counts by prompt and draft position, and the Kaplan-Meier estimate of the accepted length that they give."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gumiho_theory import AcceptanceCounts, InputError
from gumiho_theory.types import FloatArray


class KaplanMeier:
    """Conditional rates estimated one position at a time: accepted / at risk, pooled over cycles.

    L is a discrete survival time and 1 - p_i its hazard; a cycle cut short (end of the text, end of the context) stays
    at risk up to the cut. The product of the rates is the Kaplan-Meier survival (Kaplan and Meier, 1958). Raises as
    `positions` does.
    """

    def __init__(self, counts: AcceptanceCounts) -> None:
        self.at_risk, self.accepted = positions(counts)

    @cached_property
    def rates(self) -> FloatArray:
        """Rates [D] of all logged positions; nan where nothing is known."""
        rates = _ratio(self.accepted.sum(axis=0), self.at_risk.sum(axis=0))
        # After a rate of 0 nothing is at risk, but nothing survives either: any rate gives the same distribution of L.
        dead = np.cumsum(rates == 0.0) > 0
        return np.where(np.isnan(rates) & dead, 0.0, rates)

    @cached_property
    def support(self) -> int:
        """Deepest position whose survival the counts determine.

        A position never reached because an earlier rate is 0 counts as determined: its survival is 0.
        """
        known = np.isfinite(self.rates)
        return int(known.size if known.all() else np.argmin(known))

    def refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Return the rates [B, depth] of prompts weighted by each row of weights [B, G]; `depth` at most `support`.

        A position that no cycle of a resample reaches keeps the pooled rate.
        """
        rates = _ratio(weights @ self.accepted[:, :depth], weights @ self.at_risk[:, :depth])
        filled: FloatArray = np.where(np.isnan(rates), self.rates[:depth], rates)
        return filled

    def log_likelihood(self, counts: AcceptanceCounts, smoothing: float) -> float:
        """Return the log-likelihood (nats) of counts; `smoothing` is added to both outcomes of each rate.

        0 is the fit itself, 0.5 the Krichevsky-Trofimov rule that keeps rates off 0 and 1 when other prompts are
        scored.
        """
        seen, won = self.at_risk.sum(axis=0), self.accepted.sum(axis=0)
        at_risk, accepted = (part.sum(axis=0) for part in positions(counts))
        return binomial_log_likelihood(at_risk, accepted, _ratio(won + smoothing, seen + 2 * smoothing))


def positions(counts: AcceptanceCounts) -> tuple[FloatArray, FloatArray]:
    """Return the cycles at risk and accepted by prompt and draft position, float [G, D]; InputError without any."""
    if counts.at_risk is None or counts.accepted is None:
        raise InputError("counts", "totals without draft positions", "cycles at risk and accepted by position")
    at_risk = np.asarray(counts.at_risk, dtype=np.float64)
    accepted = np.asarray(counts.accepted, dtype=np.float64)
    if not at_risk.size or not at_risk.sum():
        raise InputError("counts", "no cycle at risk", "at least one cycle with a drafted position")
    return at_risk, accepted


def binomial_log_likelihood(at_risk: FloatArray, accepted: FloatArray, rates: FloatArray) -> float:
    """Return the sum over positions of k log r + (n - k) log(1 - r), nats, with 0 log 0 = 0; all arrays are [D].

    -inf where a rate of 0 or 1 is contradicted; rates where n = 0 are ignored.
    """
    refused = at_risk - accepted
    with np.errstate(divide="ignore", invalid="ignore"):
        won = np.where(accepted > 0, accepted * np.log(rates), 0.0)
        lost = np.where(refused > 0, refused * np.log1p(-rates), 0.0)
    return float(won.sum() + lost.sum())


def freeze(holder: object, *names: str) -> None:
    """Replace a frozen dataclass's arrays by read-only int64 copies."""
    for name in names:
        array = np.array(getattr(holder, name), dtype=np.int64)
        array.setflags(write=False)
        object.__setattr__(holder, name, array)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)
    return ratio
