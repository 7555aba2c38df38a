"""Drafting by looking things up in the text itself: no model, no training (Saxena, "Prompt Lookup Decoding", 2023).

What followed the last tokens where they stood before is likely to follow them again: code, quotations, lists, names.
All is looked up on the host, so each cycle waits for the device.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import chain

import numpy as np
import torch

from gumiho_decoder.draft import Draft, DraftOptions
from gumiho_decoder.drafters.growing.branches import Branches, Grown
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.target import Target
from gumiho_theory import InputError, Structure

_NO_CANDIDATE = -2  # a token that equals none, nor the -1 that stands for unknown ones


class NgramDrafter(TreeDrafter):
    """Prompt lookup: the text's last tokens, `longest` of them or else fewer, are sought in the text before.

    A draft has the candidates that were found and no others: it may be smaller than the structure asked for, down to
    the root alone.

    Parameters
    ----------
    target : Target
    longest, shortest : int
        Most and fewest tokens that have to match.

    Raises
    ------
    InputError
        Not 1 <= shortest <= longest.
    """

    name = method = "ngram"
    fingerprint = hashlib.sha256(b"ngram").hexdigest()  # it has no weights

    def __init__(self, target: Target, longest: int = 3, shortest: int = 1) -> None:
        for place, found, low in (("shortest", shortest, 1), ("longest", longest, shortest)):
            if isinstance(found, bool) or not isinstance(found, int) or found < low:
                raise InputError(f"n-gram, {place}", repr(found), f"an integer of at least {low}")
        self.target = target
        self.longest, self.shortest = longest, shortest
        self._text = np.empty(0, dtype=np.int64)

    @property
    def root_token(self) -> torch.Tensor:
        """See `TreeDrafter.root_token`."""
        return torch.tensor(self._text[-1:], device=self.target.head_device)

    def start(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.start`."""
        self._text = tokens.cpu().numpy()

    def advance(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.advance`."""
        self._text = np.concatenate([self._text, tokens.cpu().numpy()])

    def branches(self, depth: int, roots: torch.Tensor | None = None) -> NgramBranches:
        """See `TreeDrafter.branches`."""
        at = [len(self._text) - 1] if roots is None else roots.tolist()
        return NgramBranches(self, self._text, at)

    def grow(self, structure: Structure, options: DraftOptions, branches: Branches, roots: torch.Tensor) -> Grown:
        """See `TreeDrafter.grow`; nodes that are no candidates have a token below 0: no text goes through them."""
        grown = super().grow(structure, options, branches, roots)
        if grown.tokens.shape[1] == 1:
            return grown
        above = grown.parents[:, 1:]
        behind = grown.row.gather(1, above)
        batch = torch.arange(len(roots), device=roots.device)[:, None]
        found = torch.ones_like(grown.tokens, dtype=torch.bool)
        # Behind what is no candidate there is no distribution, and so none either (nan, once tempered, is not above).
        found[:, 1:] = grown.log_q[batch, behind, grown.tokens[:, 1:]] > -torch.inf
        return replace(grown, tokens=grown.tokens.where(found, _NO_CANDIDATE))

    def propose(self, structure: Structure, options: DraftOptions = DraftOptions()) -> Draft:  # noqa: B008
        """See `Drafter.propose`: only the candidates, and only the distributions that are some."""
        draft = super().propose(structure, options)
        kept = (draft.tokens >= 0).nonzero()[:, 0]
        row = draft.row[kept]
        if len(draft.log_q):
            row = row.where(draft.log_q[row.clamp_min(0)].amax(dim=1) > -torch.inf, -1)
        some = row >= 0
        parents = torch.searchsorted(kept, draft.parents[kept]).where(kept > 0, -1)
        depths = draft.depths[kept]
        return Draft(
            draft.tokens[kept],
            parents,
            depths,
            draft.ancestors[kept][:, kept],
            draft.ranks[kept],
            draft.log_q[row[some]].reshape(-1, self.target.vocab_size),
            (some.cumsum(0) - 1).where(some, -1),
            int(depths.max()),
            draft.sampled,
            parents.cpu(),
        )


class NgramBranches:
    """What followed where the text before a node stood already; see `Branches`.

    A token's weight is the number of places that it followed, and less than 1 more, the more the later the last of
    them is: of equally frequent tokens the most recent comes first. Behind a drafted token only those places count
    that went on with it. Where none is left there is no distribution: -inf throughout.

    Parameters
    ----------
    drafter : NgramDrafter
    text : int64 array, shape (n + 1,)
    roots : list of int
        Each start's root within the text: what comes later is unknown to it.
    """

    def __init__(self, drafter: NgramDrafter, text: np.ndarray, roots: list[int]) -> None:
        self._target = drafter.target
        self._text, self._roots = text, roots
        # For each start and node, where in the text the tokens stand that followed: ascending.
        self._places = [[self._matches(root, drafter.longest, drafter.shortest)] for root in roots]

    def _matches(self, root: int, longest: int, shortest: int) -> np.ndarray:
        """Return the places behind the most tokens, up to `longest`, that equal the last ones up to `root`."""
        places = np.arange(1, root + 1)
        for matched in range(1, longest + 1):
            # A match of m tokens is one of m - 1 tokens with one more before it.
            more = places[places >= matched]
            more = more[self._text[more - matched] == self._text[root + 1 - matched]]
            if not len(more):
                return places if matched > shortest else more
            places = more
        return places

    def root(self) -> torch.Tensor:
        """See `Branches.root`."""
        return self._log_q()

    def deeper(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Branches.deeper`."""
        self._places = [
            [self._behind(above[parent], token, root) for token, parent in zip(*nodes, strict=True)]
            for above, root, *nodes in zip(self._places, self._roots, tokens.tolist(), parents.tolist(), strict=True)
        ]
        return self._log_q(), torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)

    def _behind(self, places: np.ndarray, token: int, root: int) -> np.ndarray:
        """Of `places` go on with those that have `token`: return the places behind them."""
        places = places[self._text[places] == token] + 1
        return places[places <= root]

    def _log_q(self) -> torch.Tensor:
        """Return the distributions behind the nodes of the last level, (B, R, V)."""
        batch, nodes = len(self._places), len(self._places[0])
        device = self._target.head_device
        log_q = torch.full((batch * nodes, self._target.vocab_size), -torch.inf, device=device)
        flat = zip(np.repeat(self._roots, nodes), chain.from_iterable(self._places), strict=True)
        tokens, values = zip(*(self._distribution(places, root) for root, places in flat), strict=True)
        rows = np.repeat(np.arange(batch * nodes), [len(some) for some in tokens])
        at = torch.tensor(np.stack([rows, np.concatenate(tokens)]), device=device)
        log_q[at[0], at[1]] = torch.tensor(np.concatenate(values), dtype=torch.float32, device=device)
        return log_q.unflatten(0, (batch, nodes))

    def _distribution(self, places: np.ndarray, root: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct tokens at `places`, and their log-probabilities."""
        latest = places[::-1]
        tokens, first, count = np.unique(self._text[latest], return_index=True, return_counts=True)
        weights = count + latest[first] / (root + 1)
        return tokens, np.log(weights) - np.log(weights.sum() if len(weights) else 1.0)
