"""A hidden difficulty that lasts over tokens: rates that know where cycles of another draft length would begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from gumiho_simulator.acceptance.chain.likelihood import Pieces, log_likelihood, maximise
from gumiho_simulator.acceptance.chain.links import anchored
from gumiho_simulator.acceptance.chain.tokens import FREE_DEPTHS, TokenChain
from gumiho_simulator.acceptance.model import AcceptanceModel
from gumiho_simulator.acceptance.observed.counts import KaplanMeier
from gumiho_simulator.acceptance.observed.evidence import Observations
from gumiho_theory import tau
from gumiho_theory.types import FloatArray

# Relative error that remains when a fit at one draft length forecasts another, a standard deviation for each doubling
# or halving: replays of four public logs of an EAGLE drafter (300 to 500 prompts each) from length 3 to 1, 2, 5 and 7
# erred by 0.0 to 1.5 %, 0.6 % a doubling in the root mean square.
TRANSFER_ERROR = 0.006
# Least standard deviation of a depth effect's step beyond the log, on the logit scale.
_STEP_BEYOND = 0.1
# A damped trend (Gardner and McKenzie, 1985): each step beyond the log is this share of the one before.
_DAMPING = 0.5
_CELLS = 2_000_000


@dataclass(frozen=True, eq=False)
class HiddenMarkovModel(AcceptanceModel):
    """A token chain fitted to cycles in order, and the measured rates that it carries to other draft lengths.

    The parameters maximise the likelihood of the accepted lengths in order (forward algorithm) times weak normal
    priors that keep them finite. Rates of the logged draft are the measured ones (Kaplan-Meier); for another length
    the chain says how the rates change because cycles begin elsewhere, and that change is added on the logit scale.

    Parameters
    ----------
    states
        Number of difficulties: 2 or 3. Three fit logs better and forecast other lengths no better (four public logs).
    theta : ndarray [P]
        Parameters of `TokenChain`.
    """

    states: int
    theta: FloatArray = field(repr=False)

    name = "hmm"
    needs = ("cycles",)
    beyond = "the depths' effect goes on with its trend, damped, give or take a random walk"
    restarts = True

    @classmethod
    def fit(cls, observed: Observations, states: int = 2, begin: FloatArray | None = None) -> Self:
        """Fit to cycles in order, of 2 or 3 difficulties; InputError for a log without order, or no cycle at risk.

        `begin` [P] is where to begin, such as the parameters of a fit to more prompts.
        """
        observed.need(cls.name, cls.needs)
        measured = KaplanMeier(observed.counts)
        depths = min(measured.support, FREE_DEPTHS)
        mean, spread = _prior(states, depths, float(measured.rates[0]))
        pieces = _pieces(observed)
        cycles = max(int(observed.counts.cycles.sum()), 1)

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            value, score = log_likelihood(TokenChain(states, depths, theta), pieces)
            off = (theta - mean) / spread
            return (value.sum() - 0.5 * (off @ off)) / cycles, (score.sum(axis=0) - off / spread) / cycles

        start = mean if begin is None or begin.shape != mean.shape else begin
        bounds = list(zip((mean - 5 * spread).tolist(), (mean + 5 * spread).tolist(), strict=True))
        return cls(observed, states, maximise(objective, start, bounds))

    @cached_property
    def chain(self) -> TokenChain:
        """The fitted token chain."""
        return TokenChain(self.states, min(self.support, FREE_DEPTHS), self.theta)

    @property
    def parameters(self) -> dict[str, Any]:
        """Rates by difficulty behind a right token at depth 1, their shares of the text, persistence, other effects."""
        chain = self.chain
        matrix, shares = chain.difficulties()
        right, wrong = chain.rates(1)
        return {
            "states": self.states,
            "rate": right.tolist(),
            "rate_behind_mistake": wrong.tolist(),
            "share": shares.tolist(),
            "same_next": np.diag(matrix).tolist(),
            "depth_effect": [0.0, *np.cumsum(chain.part("increments")).tolist()],
        }

    def conditional(self, depth: int) -> FloatArray:
        """Return the rates of chain:`depth`, begun where its own cycles begin; see `AcceptanceModel`.

        Beyond `support` the depth effect goes on with the trend of the log's, damped.
        """
        measured = self.measured.rates[: self.support]
        rates: FloatArray = self._carried(self.theta[None], measured[None], depth)[0]
        return rates

    def _refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Refit by one Newton step from the fit."""
        measured = self.measured.refitted(weights, self.support)
        if depth == self.support:
            return measured  # whatever the chain
        moved = self.theta + (weights - 1) @ self._influence
        # Far from the optimum a step says nothing; the bounds of the fit hold for it too.
        mean, spread = _prior(self.states, self.chain.depths, float(self.measured.rates[0]))
        thetas = np.clip(moved, mean - 5 * spread, mean + 5 * spread)
        batch = max(1, _CELLS // ((depth + 2) * 4 * self.states**2))
        return np.concatenate(
            [
                self._carried(thetas[at : at + batch], measured[at : at + batch], depth)
                for at in range(0, len(thetas), batch)
            ]
        )

    def doubt(self, depth: int, draws: int, generator: np.random.Generator) -> FloatArray:
        """Draw factors [draws] about 1 on tau by which the model itself may be wrong about chain:`depth`.

        All 1 at the logged length; else the error that replays of public logs showed for each doubling of the length
        and, beyond the log, depth effects that go on as a random walk with steps as large as the log's own.
        """
        support = self.support
        if depth == support:
            return np.ones(draws)
        error = np.exp(generator.normal(0, TRANSFER_ERROR * abs(np.log2(depth / support)), draws))
        if depth < support:
            return error
        steps = self.chain.part("increments")[1:]
        spread = np.sqrt(_STEP_BEYOND**2 + (float(np.mean(steps**2)) if steps.size else 0.0))
        beyond = np.cumsum(generator.normal(0, spread, (draws, depth + 1 - support)), axis=1)
        trend = self.trend(self.chain, depth)
        shifts = trend + np.concatenate([np.zeros((draws, support)), beyond], axis=1)
        theta = np.broadcast_to(self.theta, (draws, self.theta.size))
        chain = TokenChain(self.states, self.chain.depths, theta)
        factor: FloatArray = error * tau(chain.chain_rates(depth, shifts)) / tau(self.chain.chain_rates(depth, trend))
        return factor

    def restarted(self, rates: FloatArray) -> FloatArray:
        """Carry a tree's conditional rates by depth from where the logged cycles began to where its own cycles begin.

        Rates are [B, K], K at most `support`.
        """
        depth = rates.shape[1]
        own = self.chain.chain_rates(self.support)[:depth]
        theta = np.broadcast_to(self.theta, (len(rates), self.theta.size))
        chain = TokenChain(self.states, self.chain.depths, theta)
        inside = np.clip(rates, 1e-4, 1 - 1e-4)
        shifts = np.log(inside / (1 - inside)) - np.log(own / (1 - own))
        shifts = np.concatenate([shifts, shifts[:, -1:]], axis=1)
        logged = self.chain.cycle_starts(self.support)
        there = chain.chain_rates(depth, shifts, np.broadcast_to(logged, (len(rates), logged.size)))
        return anchored(rates, there, chain.chain_rates(depth, shifts), np.ones(depth))

    def log_likelihood(self, observed: Observations, smoothing: float = 0.0) -> float:
        """Return the log-likelihood of cycles in order, each given the past of its output; see `AcceptanceModel`."""
        observed.need(self.name, self.needs)
        return float(log_likelihood(self.chain, _pieces(observed))[0].sum())

    def _carried(self, thetas: FloatArray, measured: FloatArray, depth: int) -> FloatArray:
        chain = TokenChain(self.states, self.chain.depths, thetas)
        if not depth:
            return np.zeros((len(thetas), 0))
        weights = self.measured.at_risk.sum(axis=0)[: self.support]
        asked = chain.chain_rates(depth, self.trend(chain, depth))
        logged = chain.chain_rates(self.support, self.trend(chain, self.support))
        return anchored(measured, logged, asked, weights)

    def trend(self, chain: TokenChain, depth: int) -> FloatArray:
        """Return what the depth effect of chain:`depth` goes on by beyond the log, [..., depth + 1]; 0 within it."""
        steps = chain.part("increments")[..., 1:]  # the first follows the target's own features, others do not
        mean = steps.mean(axis=-1) if steps.shape[-1] else np.zeros(chain.theta.shape[:-1])
        beyond = np.maximum(np.arange(1, depth + 2) - self.support, 0)
        damped: FloatArray = mean[..., None] * (1 - _DAMPING**beyond) * _DAMPING / (1 - _DAMPING)
        return damped

    @cached_property
    def _influence(self) -> FloatArray:
        """What one more copy of each prompt moves the parameters by, [G, P]: inverse information times score."""
        pieces = _pieces(self.observed)
        _, score = log_likelihood(self.chain, pieces)
        size, step = self.theta.size, 1e-4
        _, spread = _prior(self.states, self.chain.depths, 0.5)
        information = np.diag(1 / spread**2)
        for k in range(size):
            ends = [
                log_likelihood(TokenChain(self.states, self.chain.depths, self.theta + sign * step * e), pieces)[1]
                for e in np.eye(size)[k : k + 1]
                for sign in (1, -1)
            ]
            information[k] -= (ends[0] - ends[1]).sum(axis=0) / (2 * step)
        values, vectors = np.linalg.eigh((information + information.T) / 2)
        # Flat or falling directions hold no information beyond the prior's.
        inverse = (vectors / np.maximum(values, 1 / spread.max() ** 2)) @ vectors.T
        influence: FloatArray = score @ inverse
        return influence


def _pieces(observed: Observations) -> Pieces:
    assert observed.cycles is not None  # asked for by `need`
    return Pieces.of(observed.cycles)


def _prior(states: int, depths: int, first: float) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations of the priors, [P] each; wide beside what a few hundred cycles say.

    Difficulties are spread about the first position's logit, the easiest last; a difficulty lasts a few tokens; behind
    a mistake the logit is about 0.3 lower.
    """
    level = float(np.log((first + 0.01) / (1.01 - first)))
    parts = [
        (level + np.linspace(-1, 1, states), 2.0),
        (np.zeros(depths - 1), 1.0),
        (np.linspace(0.5, 2.0, states) if states > 2 else np.array([1.0]), 1.5),
        (np.zeros(states - 1), 1.5),
        (np.array([np.log(0.3)]), 1.0),
    ]
    return np.concatenate([m for m, _ in parts]), np.concatenate([np.full(m.size, s) for m, s in parts])
