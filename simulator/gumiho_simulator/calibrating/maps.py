"""Fitting score maps: what a drafter's candidates at one depth are worth, behind the true prefix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gumiho_simulator.calibrating.error import Scored
from gumiho_theory import EveryPositionLog, IsotonicMap, TemperatureMap
from gumiho_theory.types import BoolArray, FloatArray, IntArray

ScoreMap = TemperatureMap | IsotonicMap

_BETAS = 0.05, 20.0
_STEEPEST = 60.0
_NOTHING = 1e-9
_MOST_BINS = 200


@dataclass(frozen=True, eq=False)
class Candidates:
    """The drafter's best k candidates at one depth, from N places.

    `q_draft` [N, k] are draft probabilities, best first, nan where there were fewer candidates; `right` [N, k] tells
    whether each is the true token, a row without any being a miss; `prompt` [N] numbers prompts from 0; `tokens` is the
    size of the vocabulary, as far as the log shows.
    """

    q_draft: FloatArray
    right: BoolArray
    prompt: IntArray
    tokens: int

    @classmethod
    def of(cls, log: EveryPositionLog, depth: int, rows: BoolArray, prompt: IntArray) -> Candidates:
        """Take the candidates at a depth (from 1) from the chosen `rows` where they and the true token are known."""
        ids, q, true = log.top_ids[:, depth - 1], log.top_q[:, depth - 1], log.true_token[:, depth - 1]
        some = rows & (true >= 0) & (ids[:, 0] >= 0) & (q[:, 0] > 0)
        tokens = 1 + int(max(log.top_ids.max(initial=0), log.true_token.max(initial=0)))
        return cls(np.where(ids[some] >= 0, q[some], np.nan), ids[some] == true[some, None], prompt[some], tokens)

    def scored(self, score_map: ScoreMap | None, first: bool = False) -> Scored:
        """Return all candidates, or each place's `first` alone, with a map's probabilities (None: the draft's)."""
        if score_map is None:
            probability = self.q_draft
        elif isinstance(score_map, TemperatureMap):
            probability = np.exp(self.log_softmax(score_map.beta)[0])
        else:
            probability = np.where(np.isnan(self.q_draft), np.nan, score_map(np.nan_to_num(self.q_draft)))
        kept = ~np.isnan(self.q_draft)
        if first:
            kept[:, 1:] = False
        prompt = np.broadcast_to(self.prompt[:, None], kept.shape)
        return Scored(np.clip(probability[kept], 0.0, 1.0), self.right[kept], prompt[kept])

    def log_softmax(self, beta: float) -> tuple[FloatArray, FloatArray]:
        """Return log softmax(beta log q) of the candidates, [N, k], and of all other tokens together, [N].

        Behind the last of k candidates q is taken to fall as (rank / k)^-s, with s such that all probabilities sum
        to 1: within a few hundredths of the sum over the whole vocabulary for beta from 1.5 to 3 (embedded pair, k = 10
        beside 512), where leaving the others out would cost up to two fifths of it. A place with fewer than k
        candidates has no others.
        """
        q = np.nan_to_num(self.q_draft)
        with np.errstate(divide="ignore"):
            scores = beta * np.log(q)
            others = beta * np.log(q[:, -1]) + np.log(_powers(beta * self._fall, q.shape[1], self.tokens))
        others = np.where(self._has_others, others, -np.inf)
        top = scores.max(axis=1)
        total = top + np.log(np.exp(scores - top[:, None]).sum(axis=1) + np.exp(others - top))
        return scores - total[:, None], others - total

    @cached_property
    def _rest(self) -> FloatArray:
        """Probability of the tokens that were not logged, [N]."""
        rest: FloatArray = np.maximum(1.0 - np.nansum(self.q_draft, axis=1), 0.0)
        return rest

    @cached_property
    def _has_others(self) -> BoolArray:
        """Whether anything lies behind the candidates, [N]."""
        full = np.nan_to_num(self.q_draft[:, -1]) > 0
        others: BoolArray = full & (self._rest > _NOTHING) & (self.tokens > self.q_draft.shape[1])
        return others

    @cached_property
    def _fall(self) -> FloatArray:
        """The exponent s of each place, [N], by bisection."""
        k = self.q_draft.shape[1]
        wanted = self._rest / np.where(self._has_others, self.q_draft[:, -1], 1.0)
        low, high = np.zeros(len(wanted)), np.full(len(wanted), _STEEPEST)
        for _ in range(40):
            middle = (low + high) / 2
            more = _powers(middle, k, self.tokens) > wanted
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return low


def fit_temperature(candidates: Candidates) -> TemperatureMap:
    """Fit the inverse temperature, from 0.05 to 20, by maximum likelihood, misses included.

    Each place, at least one, is one draw from softmax(beta log q): it gives the true token where that is among the
    candidates, and otherwise any other token.
    """
    from scipy.optimize import minimize_scalar

    hit = candidates.right.any(axis=1)

    def loss(log_beta: float) -> float:
        log_p, log_miss = candidates.log_softmax(float(np.exp(log_beta)))
        # A miss where nothing lies behind the candidates speaks for no beta.
        return -float(log_p[candidates.right].sum() + log_miss[~hit & (log_miss > -np.inf)].sum())

    low, high = np.log(_BETAS)
    return TemperatureMap(float(np.exp(minimize_scalar(loss, bounds=(low, high), method="bounded").x)))


def fit_isotonic(candidates: Candidates) -> IsotonicMap:
    """Fit acceptance as a non-decreasing function of draft probability: pool adjacent violators over bins.

    Bins hold equal sums of draft probability and as many of them as the root of the number of true candidates; each
    gets half a hit and half a miss more, so that no candidate is called impossible or certain, and a knot at its mean
    draft probability. Draft probability 0 is acceptance 0.
    """
    from scipy.optimize import isotonic_regression

    kept = candidates.q_draft > 0
    q, right = candidates.q_draft[kept], candidates.right[kept]
    order = np.argsort(q)
    bins = int(np.clip(np.sqrt(right.sum()), 1, _MOST_BINS))
    sums = np.cumsum(q[order])
    edges = np.unique(q[order][np.searchsorted(sums, sums[-1] * np.arange(1, bins) / bins)])
    where = np.searchsorted(edges, q)  # by value: equal probabilities share a bin
    count = np.bincount(where)
    q_sums, hits = (np.bincount(where, weights=w)[count > 0] for w in (q, right))
    count = count[count > 0]
    knots, fitted = q_sums / count, isotonic_regression((hits + 0.5) / (count + 1), weights=count + 1.0).x
    apart = np.diff(knots, prepend=0.0) > 0  # neighbours closer than rounding
    return IsotonicMap((0.0, *knots[apart].tolist()), (0.0, *fitted[apart].tolist()))


def _powers(s: FloatArray, k: int, tokens: int) -> FloatArray:
    """Return the sum of (rank / k)^-s over ranks k + 1 to `tokens`, by the midpoint rule."""
    away = np.where(s == 1.0, 1e-12, 1.0 - s)
    first = k + 0.5
    sums: FloatArray = first * (first / k) ** -s * np.expm1(away * np.log((tokens + 0.5) / first)) / away
    return sums
