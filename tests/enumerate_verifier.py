"""The exact law of what a verifier emits, by summing over every outcome; and verifiers as plain loops, right and wrong.

A "star" is a rule at one node: (p, q, children's tokens in order) -> (each child's acceptance, residual). Vocabularies
are small, everything is float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

Path = tuple[int, ...]
Star = Callable[[np.ndarray, np.ndarray, list[int]], tuple[list[float], np.ndarray]]
Rule = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


# ---- models and trees


@dataclass(frozen=True)
class Table:
    """A language model: `levels[d]`, shape (V,) * (d + 1), holds the next token's law behind d tokens."""

    levels: tuple[np.ndarray, ...]

    @classmethod
    def random(cls, rng: np.random.Generator, vocab: int, depth: int, zeros: float = 0.0, alpha: float = 1.0) -> Table:
        """Dirichlet rows; each entry is 0 with probability `zeros` (one entry of a row never is)."""
        levels = []
        for d in range(depth + 1):
            rows = rng.dirichlet(np.full(vocab, alpha), size=(vocab,) * d) + 1e-9
            keep = rng.random(rows.shape) >= zeros
            np.put_along_axis(keep, rng.integers(0, vocab, size=(*rows.shape[:-1], 1)), True, axis=-1)
            rows = rows * keep
            levels.append(rows / rows.sum(-1, keepdims=True))
        return cls(tuple(levels))

    @property
    def vocab(self) -> int:
        return len(self.levels[0])

    def law(self, length: int, behind: Path = ()) -> np.ndarray:
        """Law of the next `length` tokens, shape (V,) * length."""
        law = np.ones(())
        for d in range(len(behind), len(behind) + length):
            law = law[..., None] * self.levels[d][behind]
        return law

    def map(self, change: Callable[[np.ndarray], np.ndarray]) -> Table:
        return Table(tuple(change(level) for level in self.levels))


def random_parents(rng: np.random.Generator, nodes: int, depth: int, width: int) -> list[int]:
    """Up to `nodes` nodes, numbered anyhow as long as parents come before children."""
    parents, depths, widths = [-1], [0], [0]
    for node in range(1, nodes):
        free = [n for n in range(node) if depths[n] < depth and widths[n] < width]
        if not free:
            break
        parent = int(rng.choice(free))
        parents.append(parent)
        depths.append(depths[parent] + 1)
        widths.append(0)
        widths[parent] += 1
    return parents


def children(parents: list[int]) -> list[list[int]]:
    return [[c for c, parent in enumerate(parents) if parent == node] for node in range(len(parents))]


def layout(parents: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ancestors (N, N) and depths (N,)."""
    ancestors = torch.eye(len(parents), dtype=torch.bool)
    for node in range(1, len(parents)):
        ancestors[node] |= ancestors[parents[node]]
    return ancestors, ancestors.sum(1) - 1


def paths(parents: list[int], tokens: list[int]) -> list[Path]:
    """Draft tokens from the root to each node; the root's is empty."""
    found: list[Path] = [()]
    for node in range(1, len(parents)):
        found.append((*found[parents[node]], tokens[node]))
    return found


# ---- how tokens come into a tree: every way, with its probability


def without_replacement(q: np.ndarray, count: int, used: Path = ()) -> Iterator[tuple[Path, float]]:
    """Children drawn one after another, earlier ones removed; once q is exhausted, the smallest unused tokens."""
    if count == 0:
        yield (), 1.0
        return
    left = q.copy()
    left[list(used)] = 0.0
    if left.sum() == 0:
        left[min(set(range(len(q))) - set(used))] = 1.0
    for token in np.flatnonzero(left).tolist():
        for more, weight in without_replacement(q, count - 1, (*used, token)):
            yield (token, *more), weight * left[token] / left.sum()


def reranked(q: np.ndarray, count: int) -> Iterator[tuple[Path, float]]:
    """WRONG with `sampled`: drawn, then put in the order of their probability."""
    for tokens, weight in without_replacement(q, count):
        yield tuple(sorted(tokens, key=lambda token: -q[token])), weight


def pruned(q: np.ndarray, count: int) -> Iterator[tuple[Path, float]]:
    """WRONG with `sampled`: one more drawn where there is one, then the least probable dropped."""
    for tokens, weight in without_replacement(q, min(count + 1, len(q)) if count else 0):
        dropped = min(tokens, key=lambda token: q[token], default=None)
        yield tokens if len(tokens) == count else tuple(t for t in tokens if t != dropped), weight


def most_probable(q: np.ndarray, count: int) -> Iterator[tuple[Path, float]]:
    """WRONG with `sampled`: not drawn at all."""
    yield tuple(int(token) for token in np.argsort(-q, kind="stable")[:count]), 1.0


def all_drafts(parents: list[int], drafter: Table, draw=without_replacement) -> Iterator[tuple[list[int], float]]:
    """Every token assignment of the tree, the root's being 0."""
    below = children(parents)

    def grow(node: int, tokens: list[int], weight: float) -> Iterator[tuple[list[int], float]]:
        if node == len(parents):
            yield tokens, weight
            return
        path: Path = ()
        at = node
        while at:
            path, at = (tokens[at], *path), parents[at]
        for drawn, w in draw(drafter.levels[len(path)][path], len(below[node])):
            filled = list(tokens)
            for child, token in zip(below[node], drawn, strict=True):
                filled[child] = token
            yield from grow(node + 1, filled, weight * w)

    yield from grow(0, [0] * len(parents), 1.0)


# ---- the law of the output


def emitted_law(
    rule: Rule,
    parents: list[int],
    drafts: Iterator[tuple[list[int], float]],
    target: Table,
    drafter: Table,
    seen: Table | None = None,
) -> np.ndarray:
    """Law of the first depth + 1 tokens: path and bonus token as verified, then continued by the target itself.

    The verifier is shown `seen`, which is the target unless it is meant to go wrong.
    """
    seen = target if seen is None else seen
    below, length = children(parents), len(target.levels)
    law = np.zeros((target.vocab,) * length)
    for tokens, weight in drafts:
        behind = paths(parents, tokens)
        p, q = (torch.tensor(np.array([t.levels[len(b)][b] for b in behind])) for t in (seen, drafter))
        accept, residual = (x.double().numpy() for x in rule(torch.tensor(tokens), torch.tensor(parents), p, q))
        reached = np.zeros(len(parents))
        reached[0] = weight
        for node in range(len(parents)):
            for child in below[node]:
                reached[child], reached[node] = reached[node] * accept[child], reached[node] * (1 - accept[child])
            if reached[node] > 0:
                for bonus in np.flatnonzero(residual[node]).tolist():
                    path = (*behind[node], bonus)
                    law[path] += reached[node] * residual[node, bonus] * target.law(length - len(path), path)
    return law


def per_node(star: Star) -> Rule:
    """A rule for trees from one for a node and its children."""

    def rule(tokens: torch.Tensor, parents: torch.Tensor, p: torch.Tensor, q: torch.Tensor):
        accept, residual = np.ones(len(tokens)), np.zeros(p.shape)
        for node, below in enumerate(children(parents.tolist())):
            accept[below], residual[node] = star(p[node].numpy(), q[node].numpy(), tokens[below].tolist())
        return torch.tensor(accept), torch.tensor(residual)

    return rule


# ---- verifiers as plain loops


def plain_deterministic(p: np.ndarray, q: np.ndarray, tokens: list[int]) -> tuple[list[float], np.ndarray]:
    left, accept = p.copy(), []
    for token in tokens:
        accept.append(left[token] / left.sum() if left.sum() > 0 else 0.0)
        left[token] = 0.0
    return accept, left / left.sum() if left.sum() > 0 else left


def plain_sampled(
    p: np.ndarray, q: np.ndarray, tokens: list[int], *, remove=True, renormalise=True, ratio=True
) -> tuple[list[float], np.ndarray]:
    """Recursive rejection; with a keyword False, a WRONG one."""
    p, q, accept = p.copy(), q.copy(), []
    for token in tokens:
        if q[token] == 0:
            accept.append(0.0)
            continue
        accept.append(min(1.0, p[token] / q[token]) if ratio else float(p[token] > q[token]))
        excess = np.maximum(p - q, 0.0)
        if excess.sum() > 0:
            p = excess / excess.sum()
        if remove:
            q[token] = 0.0
            if renormalise and q.sum() > 0:
                q = q / q.sum()
    return accept, p


def plain_verify(star: Star, tokens, parents, p, q, uniforms: np.ndarray) -> tuple[int, int]:
    """Down the tree node by node, then the bonus token, by the same uniforms as `verify_sampled`."""
    below, node = children(parents), 0
    while True:
        accept, residual = star(p[node], q[node], [tokens[child] for child in below[node]])
        taken = [child for child, a in zip(below[node], accept, strict=True) if uniforms[child] < a]
        if not taken:
            return node, plain_draw(residual, uniforms[-1])
        node = taken[0]


def plain_draw(probabilities: np.ndarray, uniform: float) -> int:
    total, so_far = float(np.cumsum(probabilities)[-1]), 0.0
    token = -1
    for candidate in np.flatnonzero(probabilities).tolist():
        token, so_far = candidate, so_far + float(probabilities[candidate])
        if so_far > uniform * total:
            break
    return token
