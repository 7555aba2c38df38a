"""Slow twin of growing, for the tests of methods: what stands behind every node of a draft, path by path."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from gumiho_decoder.draft import Draft, DraftOptions
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, DynamicTree, StaticTree, Structure

TOKENS = [5, 17, 3, 44, 20, 8, 8, 31, 12]

# Log q behind a path of drafted tokens, the last token of the text being its root: (text, its features, path) -> (V,).
Behind = Callable[[Sequence[int], torch.Tensor, Sequence[int]], torch.Tensor]


def structures(depth: int) -> list[Structure]:
    """A chain, a static tree and a dynamic tree of that depth."""
    paths = [(1,) * n for n in range(1, depth + 1)] + [(2,), (3,), (2, 1), (1, 3), *([(2, 1, 2)] if depth > 2 else [])]
    paths = sorted((path for path in paths if len(path) <= depth), key=lambda path: (len(path), path))
    return [
        ChainStructure(depth),
        StaticTree(tuple(paths)),
        DynamicTree(total=30, top_k=4, depth=depth, mlp_topk=5),
    ]


def started(drafter: TreeDrafter, target: Target, tokens: Sequence[int] = TOKENS) -> torch.Tensor:
    """Start a drafter on a text whose last token is the root; return the features of the others."""
    features = target.prefill(tokens[:-1]).features
    drafter.start(torch.tensor(tokens), features)
    return features


def check_behind(draft: Draft, depth: int, features: torch.Tensor, behind: Behind) -> None:
    """Every node's distribution is what its own path alone gives; of the deepest nodes there is none."""
    tree = draft.tree
    rows = draft.row.tolist()
    assert any(row >= 0 for row in rows)
    for node in range(draft.n_nodes):
        path = [int(draft.tokens[i]) for i in tree.path_to(node)][1:]
        if rows[node] >= 0:
            torch.testing.assert_close(draft.log_q[rows[node]], behind(TOKENS, features, path), atol=5e-5, rtol=1e-4)
        assert len(path) <= depth


def check_chain(draft: Draft, features: torch.Tensor, behind: Behind) -> None:
    """A chain's tokens are, one after another, the most probable ones behind those before."""
    path: list[int] = []
    for token in draft.tokens[1:].tolist():
        assert token == int(behind(TOKENS, features, path).argmax())
        path.append(token)


def check_roots(drafter: TreeDrafter, structure: Structure, features: torch.Tensor) -> None:
    """Many roots at once give what each prefix alone gives."""
    options = DraftOptions()
    places = torch.tensor([1, 4, 8, 6])
    roots = torch.tensor(TOKENS)[places]
    many = drafter.grow(structure, options, drafter.branches(structure.depth, places), roots)
    drafter.release()
    for b, place in enumerate(places.tolist()):
        drafter.start(torch.tensor(TOKENS[: place + 1]), features[:place])
        one = drafter.propose(structure, options)
        assert many.tokens[b].tolist() == one.tokens.tolist()
        assert many.parents[b].tolist() == one.parents.tolist()
        assert many.row[b].tolist() == one.row.tolist()
        torch.testing.assert_close(many.log_q[b], one.log_q, atol=5e-5, rtol=1e-4)


def check_advance(drafter: TreeDrafter, structure: Structure, features: torch.Tensor) -> None:
    """Advancing step by step leaves what starting anew with the whole text gives, whatever was drafted between."""
    tokens = torch.tensor(TOKENS)
    drafter.start(tokens, features)
    whole = drafter.propose(structure)
    drafter.start(tokens[:4], features[:3])
    drafter.propose(structure)
    drafter.advance(tokens[4:7], features[3:6])
    drafter.propose(structure)
    drafter.advance(tokens[7:], features[6:])
    again = drafter.propose(structure)
    assert again.tokens.tolist() == whole.tokens.tolist()
    torch.testing.assert_close(again.log_q, whole.log_q, atol=5e-5, rtol=1e-4)


def shaken(model: torch.nn.Module, seed: int = 0) -> None:
    """Give a model weights that make every input count: heads that start at zero would all draft the same."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.15, generator=random)
