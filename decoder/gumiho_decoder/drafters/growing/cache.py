"""A Transformer's keys and values while drafting: the verified text, and behind it the nodes of a growing tree."""

from __future__ import annotations

import torch

from gumiho_decoder.target import cache_keyword


class TreeCache:
    """The cache of a decoder-only Transformer that is part of a drafter.

    Parameters
    ----------
    transformer : nn.Module
        Takes `inputs_embeds` or `input_ids`, a boolean 4-D `attention_mask`, `position_ids` and a cache.
    output : str
        Name of what is read from its output.
    ids : bool
        Whether rows are token ids rather than embeddings.
    """

    def __init__(self, transformer: torch.nn.Module, output: str = "last_hidden_state", *, ids: bool = False) -> None:
        self._transformer, self._output = transformer, output
        self._input = "input_ids" if ids else "inputs_embeds"
        self._keyword = cache_keyword(transformer)
        self._cache = None
        self.verified = 0

    def clear(self) -> None:
        """Forget everything."""
        from transformers import DynamicCache

        self._cache = DynamicCache()
        self.verified = 0

    def read(self, rows: torch.Tensor, **arguments: object) -> torch.Tensor:
        """Read verified rows behind those that are there, (m,) or (m, H) -> (m, outputs).

        `arguments` go to the Transformer; one that has it drop outputs leaves fewer than m.
        """
        out = self._run(rows[None], **arguments)
        self.verified += len(rows)
        return out[0]

    def draft(self, prefix: torch.Tensor | None) -> DraftRows:
        """Return a new draft; see `DraftRows`."""
        return DraftRows(self, prefix)

    def drop_draft(self) -> None:
        """Forget all that was not verified."""
        if (drafted := self._cache.get_seq_length() - self.verified) > 0:
            self._cache.crop(-drafted)

    def _run(self, rows: torch.Tensor, **arguments: object) -> torch.Tensor:
        out = self._transformer(**{self._input: rows, self._keyword: self._cache}, use_cache=True, **arguments)
        return getattr(out, self._output)


class DraftRows:
    """The drafted rows of B starts: each sees the verified text before its start, its ancestors, and itself.

    Siblings are blind to each other.

    Parameters
    ----------
    prefix : int64 Tensor, shape (B,), or None
        Verified rows that belong to each start; None: all, B = 1.
    """

    def __init__(self, cache: TreeCache, prefix: torch.Tensor | None) -> None:
        self._cache, self._prefix = cache, prefix
        self._level = 0
        self._alone = prefix is None  # one start and one node a level: plain causal attention, no mask
        self._seen: torch.Tensor | None = None  # (B x n, drafted rows so far): ancestors of the last level's nodes

    def read(self, rows: torch.Tensor, parents: torch.Tensor) -> torch.Tensor:
        """Read the next level.

        `rows`: Tensor, shape (B, n) or (B, n, H). `parents` (int64 Tensor, shape (B, n)): Each node's parent within the
        level before (any value at the first level). Returns Tensor, shape (B, n, outputs).
        """
        batch, nodes = rows.shape[:2]
        self._alone = self._alone and nodes == 1
        seen = self._ancestors(parents)
        arguments = {}
        if not self._alone:
            past = torch.ones(batch * nodes, self._cache.verified, dtype=torch.bool, device=rows.device)
            if self._prefix is not None:
                columns = torch.arange(self._cache.verified, device=rows.device)
                past = (columns < self._prefix[:, None]).repeat_interleave(nodes, dim=0)
            arguments["attention_mask"] = torch.cat([past, seen], dim=1)[None, None]
            arguments["position_ids"] = (past.sum(1) + self._level)[None]
        self._seen = seen
        self._level += 1
        out = self._cache._run(rows.reshape(1, batch * nodes, *rows.shape[2:]), **arguments)
        return out.reshape(batch, nodes, -1)

    def _ancestors(self, parents: torch.Tensor) -> torch.Tensor:
        """Return which drafted rows each node of the new level sees, (B x n, rows so far + B x n)."""
        batch, nodes = parents.shape
        own = torch.eye(batch * nodes, dtype=torch.bool, device=parents.device)
        if self._seen is None:
            return own
        before = len(self._seen) // batch
        above = parents + before * torch.arange(batch, device=parents.device)[:, None]
        return torch.cat([self._seen[above.flatten()], own], dim=1)
