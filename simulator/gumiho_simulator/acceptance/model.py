"""What every acceptance model is: fitted to a log, it yields the conditional rates of any chain by draft position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from gumiho_simulator.acceptance.observed.counts import KaplanMeier
from gumiho_simulator.acceptance.observed.evidence import Observations
from gumiho_theory import AcceptanceCounts, InputError
from gumiho_theory.types import FloatArray


@dataclass(frozen=True, eq=False)
class AcceptanceModel(ABC):
    """A model of the accepted length L of one cycle, fitted to at least the parts of `observed` that it needs.

    Every rate is conditional: P(position i accepted, given that 1..i-1 were), pooled over the cycles of a draft.
    """

    observed: Observations

    name: ClassVar[str]
    """Name on the command line and in files."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Parts of `Observations` that a fit needs beside the counts."""
    beyond: ClassVar[str] = ""
    """What is assumed of positions beyond `support`; empty where the model refuses them."""
    limit: ClassVar[str] = "the deepest position observed"
    """What `support` is, in a refusal."""
    restarts: ClassVar[bool] = False
    """Whether rates take into account where the cycles of another draft length would begin."""

    @classmethod
    def fit(cls, observed: Observations) -> Self:
        """Fit by maximum likelihood, with censoring.

        InputError where the log lacks positions or a part that the model needs, or no cycle was at risk.
        """
        observed.need(cls.name, cls.needs)
        KaplanMeier(observed.counts)
        return cls(observed)

    @property
    def counts(self) -> AcceptanceCounts:
        """The counts of the fit, by prompt; what intervals resample."""
        return self.observed.counts

    @cached_property
    def measured(self) -> KaplanMeier:
        """One free rate a position of the same counts, whatever the model says."""
        return KaplanMeier(self.counts)

    @property
    def support(self) -> int:
        """Deepest draft position for which the log says something."""
        return self.measured.support

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What was estimated, for people and files."""

    @property
    def once(self) -> FloatArray:
        """The weights [1, G] of the prompts as they are."""
        return np.ones((1, len(self.counts.groups)))

    def conditional(self, depth: int) -> FloatArray:
        """Return the conditional rates [depth] of chain:`depth`, in [0, 1]; raises as `refitted` does."""
        rates: FloatArray = self.refitted(self.once, depth)[0]
        return rates

    def refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Return the conditional rates [B, depth] of chain:`depth` by refits to reweighted prompts.

        The weights [B, G], of mean 1, say how often each prompt enters each refit. A resample that says nothing of a
        position keeps the rate of all prompts. InputError where `depth` is beyond `support` and nothing is assumed
        there.
        """
        if depth > self.support and not self.beyond:
            raise InputError("draft length", depth, f"at most {self.support}, {self.limit}")
        return self._refitted(weights, depth) if depth else np.zeros((len(weights), 0))

    @abstractmethod
    def _refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Refit, `depth` being at least 1 and one that the model goes to."""

    def log_likelihood(self, observed: Observations, smoothing: float = 0.0) -> float:
        """Return the log-likelihood, nats, of accepted lengths of the same draft, each given the past of its prompt.

        `smoothing` is added to both outcomes of each rate that is a ratio of counts; models with priors do without.
        """
        return self.measured.log_likelihood(observed.counts, smoothing)
