"""Growing a draft tree: one way for all methods, which differ only in the distributions behind its nodes.

Everything is batched over B starts: decoding has one, the every-position log many.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import torch

from gumiho_decoder.draft import Draft, DraftOptions
from gumiho_decoder.drafters.files.fingerprint import fingerprint
from gumiho_decoder.drafters.growing.branches import Branches, Grown
from gumiho_decoder.drafters.growing.dynamic import grow_dynamic
from gumiho_decoder.drafters.growing.static import grow_static, host_parents
from gumiho_theory import ChainStructure, DynamicTree, InputError, StaticTree, Structure


class TreeDrafter(ABC):
    """A drafter that grows trees from `Branches`; a method implements `start`, `advance`, `branches` and `release`."""

    name: str
    method: str
    depth: int | None = None
    serial_steps: int | None = None
    positions: int | None = None

    @cached_property
    def fingerprint(self) -> str:
        """See `Drafter.fingerprint`: of the weights as they are, where `load_drafter` has not set it."""
        return fingerprint(self.model)

    @abstractmethod
    def start(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.start`."""

    @abstractmethod
    def advance(self, tokens: torch.Tensor, features: torch.Tensor) -> None:
        """See `Drafter.advance`."""

    @abstractmethod
    def branches(self, depth: int, roots: torch.Tensor | None = None) -> Branches:
        """Return the distributions of a new draft.

        Parameters
        ----------
        depth : int
            Deepest position that will be drafted.
        roots : int64 Tensor, shape (B,), optional
            Places within the sequence given to `start`, each at least 1, taken as roots: as if only the text up to
            there were verified. `advance` must not have been called since. Left out: the last token, B = 1.
        """

    @property
    @abstractmethod
    def root_token(self) -> torch.Tensor:
        """The last verified token, int64, shape (1,)."""

    def release(self) -> None:  # noqa: B027 -- a method without a cache has nothing to forget
        """Forget what the last branches left in a cache."""

    def check(self, structure: Structure, options: DraftOptions) -> None:
        """Refuse a structure that this drafter cannot make.

        Raises
        ------
        InputError
            It is deeper than the heads reach, not one that is drafted, or sampled and re-ranked.
        """
        if not isinstance(structure, ChainStructure | DynamicTree | StaticTree):
            raise InputError("structure", str(structure), "chain:K, tree:… or static:FILE")
        if self.depth is not None and structure.depth > self.depth:
            found = f"depth {structure.depth}"
            raise InputError(f"structure {structure}", found, f"at most {self.depth}, as drafter {self.name!r} reaches")
        if options.random is not None and isinstance(structure, DynamicTree):
            raise InputError(
                f"structure {structure}",
                "sampled candidates",
                "the most probable ones: re-ranking a random tree would change the output's distribution",
            )

    def propose(self, structure: Structure, options: DraftOptions = DraftOptions()) -> Draft:  # noqa: B008
        """See `Drafter.propose`.

        Raises
        ------
        InputError
            See `check`.
        """
        self.check(structure, options)
        try:
            grown = self.grow(structure, options, self.branches(structure.depth), self.root_token)
        finally:
            self.release()
        return Draft(
            grown.tokens[0],
            grown.parents[0],
            grown.depths[0],
            grown.ancestors[0],
            grown.ranks[0],
            grown.log_q[0],
            grown.row[0],
            min(structure.depth, grown.tokens.shape[1] - 1),
            options.random is not None,
            None if isinstance(structure, DynamicTree) else host_parents(structure.paths),
            None if grown.path_scores is None else grown.path_scores[0],
        )

    def grow(self, structure: Structure, options: DraftOptions, branches: Branches, roots: torch.Tensor) -> Grown:
        """Grow the trees of B starts, whose root tokens are `roots`, (B,)."""
        if isinstance(structure, DynamicTree):
            serial = structure.depth if self.serial_steps is None else self.serial_steps
            return grow_dynamic(branches, structure, roots, serial, options)
        return grow_static(branches, structure, roots, options)
