"""Drafting with a smaller causal LM of the same tokenizer, as in speculative sampling's first papers.

Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (arXiv 2211.17192).
"""

from __future__ import annotations

import torch

from gumiho_decoder.drafters.draft_model.vocabulary import Alignment, check_tokenizers
from gumiho_decoder.drafters.growing.cache import DraftRows, TreeCache
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.target import Target
from gumiho_theory import InputError


class DraftModelDrafter(TreeDrafter):
    """A causal LM that drafts for another one.

    Of `draft` only the model and the tokenizer are used; the cache is the drafter's own, so that a target can even
    draft for itself. The cache holds all verified tokens, the root included: its logits are the root's.

    Attributes
    ----------
    alignment : Alignment
        Between the two vocabularies.
    positions : int or None
        Most tokens, of text and draft together, that the draft model can read; None: any number. A draft of depth d
        behind n tokens has it read n + d - 1: the deepest tokens are not read. A text may outgrow it while it is
        decoded: then only drafts of depth 0, the root alone, are left.

    Raises
    ------
    InputError
        The tokenizers differ.
    """

    method = "draft-model"

    def __init__(self, draft: Target, target: Target, name: str) -> None:
        check_tokenizers(target.tokenizer, draft.tokenizer, f"drafter {name!r}, tokenizer")
        self.name = name
        self.draft, self.target = draft, target
        self.model = draft.model
        self.alignment = Alignment.of(target, draft)
        positions = getattr(draft.config, "max_position_embeddings", None)
        self.positions = positions if isinstance(positions, int) else None
        self._cache = TreeCache(draft.model, output="logits", ids=True)
        self._tokens = torch.empty(0, dtype=torch.int64)  # the sequence given to `start`
        self._root = self._tokens
        self._length = 0  # of the sequence, root included
        self._behind_root = torch.empty(0)

    @property
    def root_token(self) -> torch.Tensor:
        """See `TreeDrafter.root_token`."""
        return self._root

    def start(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.start`.

        Raises
        ------
        InputError
            The text is longer than what the draft model can read.
        """
        if self.positions is not None and len(tokens) > self.positions:
            raise InputError(
                f"drafter {self.name!r}, positions",
                self.positions,
                f"at least {len(tokens)}, the tokens of the text that target {self.target.name!r} has read",
            )
        self._cache.clear()
        self._length = 0
        self._tokens = tokens
        self.advance(tokens, features)

    def advance(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.advance`."""
        self._root = tokens[-1:]
        self._length += len(tokens)
        if self.positions is None or self._length <= self.positions:
            self._behind_root = self._cache.read(self.read(tokens), logits_to_keep=1)

    def branches(self, depth: int, roots: torch.Tensor | None = None) -> DraftModelBranches:
        """See `TreeDrafter.branches`.

        Raises
        ------
        InputError
            The deepest tokens to be read lie beyond the draft model's positions.
        """
        last = self._length - 1 if roots is None else int(roots.max())
        if depth and self.positions is not None and last + depth > self.positions:
            raise InputError(
                f"drafter {self.name!r}, positions",
                self.positions,
                f"at least {last + depth}, for depth {depth} behind token {last} of target {self.target.name!r}",
            )
        if roots is None:
            return DraftModelBranches(self, self._cache.draft(None), self._behind_root[None])
        # Each root is read once more, as the first node of its draft: so `start` need not keep the logits of all rows.
        rows = self._cache.draft(roots.to(self.draft.device))
        tokens = self._tokens.to(roots.device)[roots, None]
        return DraftModelBranches(self, rows, rows.read(self.read(tokens), torch.zeros_like(tokens)))

    def release(self) -> None:
        """See `TreeDrafter.release`."""
        self._cache.drop_draft()

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return tokens as the draft model takes them, on its device."""
        return self.alignment.read(tokens.to(self.draft.device))


class DraftModelBranches:
    """One forward of the draft model for each level of a draft; see `Branches`."""

    def __init__(self, drafter: DraftModelDrafter, rows: DraftRows, logits: torch.Tensor) -> None:
        self._drafter, self._rows = drafter, rows
        self._logits = logits  # (B, 1, draft rows)

    def root(self) -> torch.Tensor:
        """See `Branches.root`."""
        return self._log_q(self._logits)

    def deeper(self, depth: int, tokens: torch.Tensor, parents: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """See `Branches.deeper`."""
        logits = self._rows.read(self._drafter.read(tokens), parents.to(self._drafter.draft.device))
        return self._log_q(logits), torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)

    def _log_q(self, logits: torch.Tensor) -> torch.Tensor:
        return self._drafter.alignment.log_probabilities(logits).to(self._drafter.target.head_device)
