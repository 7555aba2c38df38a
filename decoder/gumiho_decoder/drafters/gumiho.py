"""Drafting with Gumiho heads: as a chain, and as an EAGLE-2 type dynamic tree with parallel levels behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gumiho_decoder.drafters.base import Draft
from gumiho_decoder.drafters.gumiho_model import GumihoModel, StackedHeads
from gumiho_decoder.target import Target, cache_keyword
from gumiho_theory import ChainStructure, DraftTree, DynamicTree, InputError
from gumiho_theory.tree import select_top


class GumihoDrafter:
    """Gumiho heads on a target, with the serial Transformer's own cache.

    Pair t of the serial Transformer is (token t + 1, feature t): it stands at position t and predicts feature t + 1.

    Raises
    ------
    InputError
        Hidden size or vocabulary of heads and target differ.
    """

    def __init__(self, model: GumihoModel, target: Target, name: str) -> None:
        for field, wanted in (("hidden_size", target.hidden_size), ("vocab_size", target.vocab_size)):
            if getattr(model.config, field) != wanted:
                found = getattr(model.config, field)
                raise InputError(f"drafter {name!r}, {field}", found, f"{wanted}, as target {target.name!r} has")
        self.name = name
        self.config = model.config
        head = target.model.get_output_embeddings()
        self.model = model.to(head.weight.device, head.weight.dtype).eval().requires_grad_(False)
        self._head, self._embed = head, target.model.get_input_embeddings()
        self._heads = StackedHeads(self.model.heads) if self.model.heads else None
        self._cache = None
        self._cache_keyword = cache_keyword(self.model.serial)
        self._root = 0
        self._feature = torch.empty(0)

    # ---- verified state

    def start(self, tokens: Sequence[int], features: torch.Tensor) -> None:
        """See `Drafter.start`."""
        from transformers import DynamicCache

        self._cache = DynamicCache()
        self.advance(tokens[1:], features)

    def advance(self, tokens: Sequence[int], features: torch.Tensor) -> None:
        """See `Drafter.advance`."""
        ids = torch.tensor(tokens, device=self._head.weight.device)
        inputs = self.model.combine(self._embedded(ids), features.to(self._head.weight))
        self._feature = self._run(inputs)[-1:]
        self._root = tokens[-1]

    def _embedded(self, ids: torch.Tensor) -> torch.Tensor:
        return self._embed(ids.to(self._embed.weight.device)).to(self._head.weight)

    def _run(self, inputs: torch.Tensor, mask: torch.Tensor | None = None, position: int | None = None) -> torch.Tensor:
        """Run the serial Transformer on (rows, H): causal behind its cache, or all at one position under `mask`."""
        positions = None if position is None else torch.full((1, len(inputs)), position, device=inputs.device)
        cache = {self._cache_keyword: self._cache}
        out = self.model.serial(inputs_embeds=inputs[None], attention_mask=mask, position_ids=positions, **cache)
        return out.last_hidden_state[0]

    def _log_q(self, features: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(self._head(features).float(), dim=-1)

    # ---- drafting

    def propose(self, structure: ChainStructure | DynamicTree) -> Draft:
        """See `Drafter.propose`.

        Raises
        ------
        InputError
            The structure is deeper than the heads reach.
        """
        if structure.depth > self.config.depth:
            raise InputError(f"structure {structure}", f"depth {structure.depth}", f"at most {self.config.depth}")
        stable = self._cache.get_seq_length()
        chain = isinstance(structure, ChainStructure)
        draft = self._chain(structure.length) if chain else self._tree(structure)
        self._cache.crop(stable - self._cache.get_seq_length())
        return draft

    def _chain(self, length: int) -> Draft:
        """Draft the best token at each depth: what the tree of width 1 gives, by a shorter way."""
        rows: list[torch.Tensor] = []
        tokens = [torch.tensor([self._root], device=self._head.weight.device)]
        feature, inputs = self._feature, []
        for depth in range(1, min(length, self.config.serial_steps) + 1):
            if depth > 1:
                feature = self._run(inputs[-1])
            rows.append(self._log_q(feature))
            tokens.append(rows[-1].argmax(-1))
            inputs.append(self.model.combine(self._embedded(tokens[-1]), feature))
        if length > self.config.serial_steps:
            window = torch.cat(inputs[-self.config.window :], dim=-1)
            rows.append(self._log_q(self._heads(window)[: length - self.config.serial_steps, 0]))
            tokens.append(rows[-1].argmax(-1))
        log_q = torch.cat(rows) if rows else torch.empty(0, self.config.vocab_size)
        return Draft(DraftTree.chain(length), torch.cat(tokens), log_q, (*range(length), -1))

    def _tree(self, structure: DynamicTree) -> Draft:
        levels = _Levels(self._root, self._head.weight.device)
        log_q, feature, seen, entered = self._log_q(self._feature), self._feature, None, None
        past = self._cache.get_seq_length()
        serial_depth = min(structure.depth, self.config.serial_steps)
        for depth in range(1, serial_depth + 1):
            parent = levels.expand(log_q, torch.arange(len(log_q)), structure.top_k, structure.top_k)
            inputs = self.model.combine(self._embedded(levels.tokens[-1]), feature[parent])
            if depth < serial_depth:
                # A node sees the verified text, its ancestors and itself: siblings are blind to each other.
                own = torch.eye(len(inputs), dtype=torch.bool, device=inputs.device)
                seen = own if seen is None else torch.cat([seen[parent], own], dim=1)
                mask = torch.nn.functional.pad(seen, (past, 0), value=True)[None, None]
                feature = self._run(inputs, mask, past + depth - 1)
                log_q = self._log_q(feature)
                entered = inputs
        if structure.depth > self.config.serial_steps:
            # Heads read the inputs of a branch's last two serial tokens, the earlier one being its own parent's.
            window = inputs if entered is None else torch.cat([entered[parent], inputs], dim=-1)
            branch = torch.arange(len(window), device=window.device)
            for head in self._log_q(self._heads(window)[: structure.depth - self.config.serial_steps]):
                parent = levels.expand(head, branch, structure.mlp_topk, structure.mlp_topk)
                branch = branch[parent]
        return levels.best(structure.total)


class _Levels:
    """Nodes of a growing tree, level by level: tokens, parents, cumulative scores, sibling ranks, rows of `log_q`."""

    def __init__(self, root: int, device: torch.device) -> None:
        self.tokens = [torch.tensor([root], device=device)]
        self._scores = [torch.zeros(1, device=device)]
        self._parents: list[torch.Tensor] = []
        self._ranks: list[torch.Tensor] = []
        self._rows: list[torch.Tensor] = []
        self._log_q: list[torch.Tensor] = []

    def expand(self, log_q: torch.Tensor, row: torch.Tensor, width: int, keep: int) -> torch.Tensor:
        """Give every node of the last level its `width` best continuations and keep the `keep` best of the new level.

        Parameters
        ----------
        log_q : Tensor, shape (distributions, vocabulary)
        row : Tensor, shape (nodes of the last level,)
            Which distribution continues each node.

        Returns
        -------
        Tensor
            Index, within the last level, of each kept node's parent.
        """
        row = row.to(log_q.device)
        self._rows.append(row + sum(len(block) for block in self._log_q))
        self._log_q.append(log_q)
        width = min(width, log_q.shape[-1])
        scores, ids = log_q.topk(width, dim=-1)
        total = (self._scores[-1][:, None] + scores[row]).flatten()
        best, index = total.topk(min(keep, len(total)))
        parent = index // width
        first = sum(len(level) for level in self.tokens[:-1])
        self._parents.append(parent + first)
        self._ranks.append(index % width + 1)
        self.tokens.append(ids[row].flatten()[index])
        self._scores.append(best)
        return parent

    def best(self, total: int) -> Draft:
        """Re-rank all nodes and keep the `total` best, root included."""
        scores = torch.cat(self._scores).cpu().numpy().astype(np.float64)
        parents = np.concatenate([[-1], torch.cat(self._parents).cpu().numpy()])
        ranks = np.concatenate([[0], torch.cat(self._ranks).cpu().numpy()])
        rows = np.concatenate([torch.cat(self._rows).cpu().numpy(), np.full(len(self.tokens[-1]), -1)])
        kept, parents = select_top(parents, scores, total)
        tree = DraftTree(parents, ranks[kept])
        tokens = torch.cat(self.tokens)[torch.from_numpy(kept).to(self.tokens[0].device)]
        return Draft(tree, tokens, torch.cat(self._log_q), tuple(rows[kept].tolist()))


def load_drafter(name: str, target: Target) -> GumihoDrafter:
    """Load a drafter for `target`: `tiny:gumiho` (embedded) or the folder of one.

    Raises
    ------
    InputError
        Nothing loadable there, or it does not fit the target.
    """
    from pathlib import Path

    from gumiho_decoder.tiny import embedded

    if name.startswith("tiny:") and name != "tiny:gumiho":
        raise InputError("drafter", repr(name), "'tiny:gumiho' or a folder")
    folder = embedded("gumiho") if name == "tiny:gumiho" else Path(name)
    return GumihoDrafter(GumihoModel.from_pretrained(folder), target, name)
