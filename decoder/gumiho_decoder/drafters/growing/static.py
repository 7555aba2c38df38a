"""Chains and static trees: the same topology every cycle, so everything but the tokens is laid out once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

from gumiho_decoder.acceptance.sampling import COLDEST
from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.growing.branches import Branches, Grown
from gumiho_theory import ChainStructure, DraftTree, InputError, StaticTree


@dataclass(frozen=True)
class _Level:
    """The n nodes of one depth; `slot` and `rank` say from which distribution and candidate each comes.

    Attributes
    ----------
    slot : int64 Tensor, shape (n,)
        Each node's parent, among the nodes of the level above that go on.
    rank : int64 Tensor, shape (n,)
        0-based rank among the parent's candidates.
    width : int
        Candidates wanted of a distribution.
    on : int64 Tensor, shape (m,)
        Nodes of this level that go on, having children.
    """

    slot: torch.Tensor
    rank: torch.Tensor
    width: int
    on: torch.Tensor


@dataclass(frozen=True)
class _Layout:
    """The levels, the nodes of all that go on, the root first, and the fields of `Draft` that never change."""

    levels: tuple[_Level, ...]
    on: torch.Tensor
    parents: torch.Tensor
    depths: torch.Tensor
    ancestors: torch.Tensor
    ranks: torch.Tensor


@lru_cache(maxsize=256)
def _layout(paths: tuple[tuple[int, ...], ...], device: torch.device, drawn: bool) -> _Layout:
    tree = DraftTree.from_rank_paths(paths)
    levels = []
    above: list[tuple[int, ...]] = [()]
    for depth in range(1, tree.depth + 1):
        here = [path for path in paths if len(path) == depth]
        inner = {path[:-1] for path in paths if len(path) == depth + 1}
        ranks = [path[-1] - 1 for path in here]
        if drawn:  # the j-th sibling is the j-th draw, whatever rank it has in the file
            ranks = [sum(other[:-1] == path[:-1] for other in here[:i]) for i, path in enumerate(here)]
        on = [i for i, path in enumerate(here) if path in inner]
        levels.append(
            _Level(
                torch.tensor([above.index(path[:-1]) for path in here], device=device),
                torch.tensor(ranks, device=device),
                max(ranks) + 1,
                torch.tensor(on, dtype=torch.int64, device=device),
            )
        )
        above = [here[i] for i in on]
    ranks = torch.zeros(tree.n_nodes, dtype=torch.int64, device=device)
    if levels:
        ranks[1:] = torch.cat([level.rank for level in levels]) + 1
    return _Layout(
        tuple(levels),
        torch.tensor(sorted(set(tree.parents[1:].tolist())), dtype=torch.int64, device=device),
        torch.tensor(tree.parents, device=device),
        torch.tensor(tree.depths, device=device),
        torch.tensor(tree.ancestor_mask, device=device),
        ranks,
    )


@lru_cache(maxsize=256)
def host_parents(paths: tuple[tuple[int, ...], ...]) -> torch.Tensor:
    """Return the parents of a static tree's nodes, on the host."""
    return torch.tensor(DraftTree.from_rank_paths(paths).parents)


def grow_static(
    branches: Branches, structure: ChainStructure | StaticTree, roots: torch.Tensor, options: DraftOptions
) -> Grown:
    """Fill a chain or a static tree with candidates.

    Raises InputError: A rank beyond the vocabulary.
    """
    layout = _layout(structure.paths, roots.device, options.random is not None)
    batch = len(roots)
    tokens, rows, tables = [roots[:, None]], [], []
    row = torch.zeros(batch, 1, dtype=torch.int64, device=roots.device)
    log_q = branches.root() if layout.levels else None
    for depth, level in enumerate(layout.levels, start=1):
        if level.width > log_q.shape[-1]:
            raise InputError(f"structure {structure}", f"rank {level.width}", f"at most {log_q.shape[-1]}, the tokens")
        if options.random is not None:
            log_q, row = _tempered(log_q, row, options.temperature)
            top = _drawn(log_q, level.width, options.random)
        else:
            top = log_q.topk(level.width, dim=-1).indices if level.width > 1 else log_q.argmax(-1, keepdim=True)
        rows.append(row + sum(table.shape[1] for table in tables))
        tables.append(log_q)
        here = top[torch.arange(batch, device=top.device)[:, None], row[:, level.slot], level.rank]
        tokens.append(here)
        if depth < len(layout.levels):
            log_q, row = branches.deeper(depth, here[:, level.on], level.slot[level.on].expand(batch, -1))
    behind = torch.full((batch, len(layout.parents)), -1, dtype=torch.int64, device=roots.device)
    if rows:
        behind[:, layout.on] = torch.cat(rows, dim=1)
    return Grown(
        torch.cat(tokens, dim=1),
        layout.parents.expand(batch, -1),
        layout.depths.expand(batch, -1),
        layout.ranks.expand(batch, -1),
        behind,
        torch.cat(tables, dim=1) if tables else torch.empty(batch, 0, 0, device=roots.device),
        layout.ancestors.expand(batch, -1, -1),
    )


def _tempered(log_q: torch.Tensor, row: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the distributions to draw from, one for each node that goes on: draws behind two nodes are independent."""
    batch = torch.arange(len(row), device=row.device)[:, None]
    own = torch.arange(row.shape[1], device=row.device).expand_as(row)
    tempered = torch.log_softmax(log_q[batch, row] / max(temperature, COLDEST), dim=-1)
    return tempered.masked_fill(tempered.isnan(), -torch.inf), own


def _drawn(log_q: torch.Tensor, width: int, random: torch.Generator) -> torch.Tensor:
    """Draw `width` distinct tokens, one after another without replacement: the largest of Gumbel-shifted logs."""
    noise = torch.empty_like(log_q).exponential_(generator=random).clamp_min(torch.finfo(log_q.dtype).tiny)
    return (log_q - noise.log()).topk(width, dim=-1).indices
