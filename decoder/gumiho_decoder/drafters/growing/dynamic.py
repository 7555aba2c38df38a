"""Dynamic trees, as in EAGLE-2: grow the most probable paths, re-rank all candidates, keep the best.

Li et al., "EAGLE-2: Faster Inference of Language Models with Dynamic Draft Trees" (arXiv 2406.16858), section 4. At a
serial level every kept node opens `top_k` candidates, all of which stay in the running while `top_k` of them go on. At
a parallel level (Gumiho) every kept node opens `mlp_topk` candidates, and the best `pruning` of the level stay.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.growing.branches import Branches, Grown
from gumiho_theory import CostProfile, DynamicTree, IsotonicMap, ScoreCalibration, TemperatureMap


def grow_dynamic(
    branches: Branches, structure: DynamicTree, roots: torch.Tensor, serial_steps: int, options: DraftOptions
) -> Grown:
    """Grow the trees of B starts and keep the best nodes of each; levels deeper than `serial_steps` are parallel."""
    pool = _Pool(roots)
    log_q, row = branches.root(), torch.zeros(len(roots), 1, dtype=torch.int64, device=roots.device)
    for depth in range(1, structure.depth + 1):
        serial = depth <= serial_steps
        width = structure.top_k if serial else structure.mlp_topk
        scores = _Scores(options.calibration, depth)
        if serial:
            tokens, parents = pool.open(log_q, row, scores, width)
            if depth < structure.depth:
                tokens, parents = pool.go_on(tokens, parents, structure.top_k)
        else:
            keep = structure.mlp_topk if structure.pruning is None else structure.pruning
            tokens, parents = pool.open(log_q, row, scores, width, keep)
        if depth < structure.depth:
            log_q, row = branches.deeper(depth, tokens, parents)
    return pool.best(structure, options.budget)


class _Scores:
    """Log-probabilities as scores, calibrated where there is a calibration; never above 0."""

    def __init__(self, calibration: ScoreCalibration | None, depth: int) -> None:
        self._map = None if calibration is None else calibration.at(depth)

    def top(self, log_q: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores and tokens of the `width` best candidates of each distribution, (B, R, width) both.

        A map never reorders candidates, so they are chosen first and mapped after.
        """
        raw, tokens = log_q.topk(width, dim=-1)
        scores = raw
        if isinstance(self._map, TemperatureMap):
            scores = torch.log_softmax(log_q * self._map.beta, dim=-1).gather(-1, tokens)
        elif self._map is not None:
            # In float64: knots may lie closer than float32 can tell.
            scores = _interpolate(raw.double().exp(), self._map).log().float()
        # What cannot be drafted stays so, whatever a map says; and nan would sort before everything.
        nothing = (raw == -torch.inf) | scores.isnan()
        return scores.clamp(max=0.0).masked_fill(nothing, -torch.inf), tokens


def _interpolate(x: torch.Tensor, scores: IsotonicMap) -> torch.Tensor:
    """Piecewise linear between the knots, constant outside."""
    at, to = _knots(scores, x.dtype, x.device)
    right = torch.searchsorted(at, x.contiguous()).clamp(1, len(at) - 1)
    share = ((x - at[right - 1]) / (at[right] - at[right - 1])).clamp(0.0, 1.0)
    return to[right - 1] + share * (to[right] - to[right - 1])


class _Pool:
    """All candidates of B growing trees, level by level; candidate 0 is the root."""

    def __init__(self, roots: torch.Tensor) -> None:
        self._tokens = [roots[:, None]]
        self._scores = [torch.zeros_like(self._tokens[0], dtype=torch.float32)]
        self._parents = [torch.full_like(self._tokens[0], -1)]
        self._ranks = [torch.zeros_like(self._tokens[0])]
        self._row = [torch.full_like(self._tokens[0], -1)]
        self._tables: list[torch.Tensor] = []
        self._on = torch.zeros_like(self._tokens[0])  # those that go on, within the last level
        self._first = 0  # candidate number of the last level's first

    def open(
        self, log_q: torch.Tensor, row: torch.Tensor, scores: _Scores, width: int, keep: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Give every node that goes on its `width` best continuations; keep all of them, or the `keep` best.

        Returns tokens, parents, int64 Tensor, shape (B, candidates): The new level, and each one's parent among the
        nodes that went on.
        """
        batch = torch.arange(len(row), device=row.device)[:, None]
        self._row[-1].scatter_(1, self._on, row + sum(table.shape[1] for table in self._tables))
        self._tables.append(log_q)
        width = min(width, log_q.shape[-1])
        top, ids = scores.top(log_q, width)
        path = (self._scores[-1].gather(1, self._on)[:, :, None] + top[batch, row]).flatten(1)
        tokens = ids[batch, row].flatten(1)
        if keep is not None and keep < path.shape[1]:
            path, index = path.topk(keep, dim=1)
            tokens = tokens.gather(1, index)
        else:
            index = torch.arange(path.shape[1], device=path.device).expand_as(path)
        parents = index // width
        self._parents.append(self._first + self._on.gather(1, parents))
        self._first += self._tokens[-1].shape[1]
        self._tokens.append(tokens)
        self._scores.append(path)
        self._ranks.append(index % width + 1)
        self._row.append(torch.full_like(tokens, -1))
        self._on = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        return tokens, parents

    def go_on(self, tokens: torch.Tensor, parents: torch.Tensor, keep: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Of the last level let only the `keep` best go on; return their tokens and parents."""
        self._on = self._scores[-1].topk(min(keep, tokens.shape[1]), dim=1).indices
        return tokens.gather(1, self._on), parents.gather(1, self._on)

    def best(self, structure: DynamicTree, budget: CostProfile | None) -> Grown:
        """Re-rank all candidates and keep the best, root included."""
        scores = torch.cat(self._scores, dim=1)
        scores[:, 0] = torch.inf
        # Scores never rise along a path and the sort keeps the earlier of equals, so no parent is cut before its child.
        best, order = scores.sort(dim=1, descending=True, stable=True)
        total = min(structure.total, scores.shape[1])
        if budget is not None:
            total = worthwhile(best[0, 1:total].exp().cpu().numpy(), structure.depth, budget)
        kept = order[:, :total].sort(dim=1).values
        parents = torch.cat(self._parents, dim=1)
        parents = torch.searchsorted(kept, parents.gather(1, kept).contiguous())
        parents[:, 0] = -1
        level = _levels(tuple(part.shape[1] for part in self._tokens), kept.device)
        return Grown(
            torch.cat(self._tokens, dim=1).gather(1, kept),
            parents,
            level[kept],
            torch.cat(self._ranks, dim=1).gather(1, kept),
            torch.cat(self._row, dim=1).gather(1, kept),
            torch.cat(self._tables, dim=1),
            _ancestors(parents, structure.depth),
            best[:, 1:total],
        )


# Tensors made of host numbers are kept: making one waits for the device.
@lru_cache(maxsize=256)
def _levels(sizes: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Return the depth of each candidate, given how many each level has."""
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes)).to(device)


@lru_cache(maxsize=256)
def _knots(scores: IsotonicMap, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(torch.tensor(values, dtype=dtype, device=device) for values in (scores.draft, scores.acceptance))


def _ancestors(parents: torch.Tensor, depth: int) -> torch.Tensor:
    """Return the ancestor masks, (B, N, N): after d rounds a node has all its ancestors of up to d generations."""
    nodes = parents.shape[1]
    own = torch.eye(nodes, dtype=torch.bool, device=parents.device)
    above = parents.clamp_min(0)[:, :, None].expand(-1, -1, nodes)
    mask = own.expand(len(parents), -1, -1)
    for _ in range(depth):
        mask = own | mask.gather(1, above)
    return mask


def worthwhile(paths: np.ndarray, depth: int, budget: CostProfile) -> int:
    """Return the number of nodes, root included, with the most expected tokens a second.

    `paths`: P(accepted) of each candidate node; their sum is the expected accepted length. `depth`: Deepest draft
    position, for the time of drafting. `budget`: Node counts outside its measured range are not considered. Returns at
    least 1: the root alone, plain decoding, where no draft pays; 2 where the profile begins there.
    """
    nodes = np.arange(1, len(paths) + 2)
    measured = (nodes >= budget.verify_nodes[0]) & (nodes <= budget.verify_nodes[-1])
    nodes = nodes[measured] if measured.any() else nodes[-1:]
    tokens = 1.0 + np.concatenate([[0.0], np.cumsum(paths, dtype=np.float64)])[nodes - 1]
    verify = np.interp(nodes, budget.verify_nodes, budget.verify_seconds)
    seconds = budget.draft_seconds(depth) + verify + budget.other_seconds
    # Compared as logarithms: the smallest times there are would overflow a ratio.
    return int(nodes[np.argmax(np.log(tokens) - np.log(seconds))])
