"""Rank rates by depth: forecasts of static trees from a log of the true token's rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gumiho_simulator.acceptance.hidden_markov import HiddenMarkovModel
from gumiho_simulator.acceptance.model import AcceptanceModel
from gumiho_simulator.acceptance.observed.rank_counts import RankCounts
from gumiho_theory.types import FloatArray

# Relative error, a standard deviation, of trees whose branches the log did not follow: from chains of 3 and 7 of the
# embedded pair's drafter a tree of 11 nodes was forecast 0.4 % low and a bushy one of 9 nodes 1.7 to 1.9 % high (64
# prompts).
PATH_ERROR = 0.01

Path = tuple[int, ...]


class RankTableModel(AcceptanceModel):
    """P(the true token is the r-th candidate at depth i | the path before it was right), by depth and rank.

    The ranks of siblings exclude one another, so a static tree accepts i tokens or more with the sum over its nodes at
    depth i of the products along their paths (Sequoia's rank vector, by depth). Two things are assumed: that behind a
    path of other ranks the candidates are as good as behind the paths the log saw (path independence), and that the
    hidden difficulty of the text is what a hidden Markov fit to the same log says, by which the rates are carried to
    where the tree's own cycles begin.
    """

    name = "rank"
    needs = ("cycles", "ranks")
    limit = "the deepest position with ranks"
    restarts = True

    @property
    def _ranks(self) -> RankCounts:
        assert self.observed.ranks is not None  # asked for by `fit`
        return self.observed.ranks

    @cached_property
    def difficulty(self) -> HiddenMarkovModel:
        """The hidden Markov fit that carries rates to other cycle starts."""
        return HiddenMarkovModel.fit(self.observed.keep(HiddenMarkovModel.needs))

    @property
    def support(self) -> int:
        """Deepest position with ranks."""
        return min(int(self._ranks.at_risk.shape[1]), self.measured.support)

    @property
    def ranks(self) -> int:
        """Ranks told apart."""
        return int(self._ranks.hits.shape[2])

    @property
    def parameters(self) -> dict[str, Any]:
        """Rates by depth and rank."""
        return {"rates": self._table(self.once)[0].tolist()}

    def _table(self, weights: FloatArray) -> FloatArray:
        """Pooled rates [B, D, R] of reweighted prompts."""
        hits, seen = self._ranks.hits.astype(np.float64), self._ranks.at_risk.astype(np.float64)
        pooled = hits.sum(axis=0) / seen.sum(axis=0)[:, None]
        reached = (weights @ seen)[:, :, None]
        sums = np.tensordot(weights, hits, axes=(1, 0))
        rates: FloatArray = np.divide(sums, reached, out=np.broadcast_to(pooled, sums.shape).copy(), where=reached > 0)
        return rates

    def tree_rates(self, weights: FloatArray, paths: Sequence[Path]) -> FloatArray:
        """Return a static tree's conditional rates by depth [B, depth], begun where its own cycles begin.

        The weights [B, G] say how often each prompt enters. The rank paths are those of its nodes but the root, with
        every prefix; at most `support` deep, ranks up to `ranks`.
        """
        table = self._table(weights)
        depth = max(len(path) for path in paths)
        reached: dict[Path, FloatArray] = {(): np.ones(len(weights))}
        survival = np.zeros((len(weights), depth))
        inner = {path[:-1] for path in paths}
        for path in sorted(paths, key=len):
            share = reached[path[:-1]] * table[:, len(path) - 1, path[-1] - 1]
            survival[:, len(path) - 1] += share
            if path in inner:
                reached[path] = share
        before = np.concatenate([np.ones((len(weights), 1)), survival[:, :-1]], axis=1)
        rates = np.divide(survival, before, out=np.zeros_like(survival), where=before > 0)
        return self.difficulty.restarted(rates)

    def _refitted(self, weights: FloatArray, depth: int) -> FloatArray:
        """Rates of the tree of first candidates alone."""
        return self.tree_rates(weights, [(1,) * i for i in range(1, depth + 1)])

    def doubt(self, depth: int, draws: int, generator: np.random.Generator) -> FloatArray:
        """Draw factors on tau by which the carrying to other cycle starts may be wrong; see `HiddenMarkovModel`."""
        return self.difficulty.doubt(depth, draws, generator)

    def tree_doubt(self, depth: int, draws: int, generator: np.random.Generator) -> FloatArray:
        """Draw factors on tau by which the forecast of a static tree may be wrong: path independence comes on top."""
        paths: FloatArray = np.exp(generator.normal(0, PATH_ERROR, draws))
        return paths * self.doubt(depth, draws, generator)
