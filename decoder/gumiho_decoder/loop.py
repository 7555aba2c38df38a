"""Speculative decoding, one readable loop; and plain decoding, which it must equal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from gumiho_decoder.drafters.base import Draft, Drafter
from gumiho_decoder.target import Target, Verified
from gumiho_decoder.verify import greedy
from gumiho_theory import ChainStructure, DynamicTree, InputError, Structure


@dataclass(frozen=True)
class GenerationConfig:
    """What is asked of one output.

    Attributes
    ----------
    max_new_tokens : int
        Most tokens in the output (EOS included). It cuts the output, never a draft.
    structure : Structure
        What the drafter is asked for in each cycle.
    """

    max_new_tokens: int = 128
    structure: Structure = field(default_factory=lambda: ChainStructure(7))

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise InputError("max_new_tokens", self.max_new_tokens, "at least 1")
        if not isinstance(self.structure, ChainStructure | DynamicTree):
            raise InputError("structure", str(self.structure), "chain:K or tree:…")


@dataclass(frozen=True)
class Generation:
    """One output.

    Attributes
    ----------
    token_ids : tuple of int
        New tokens, EOS included.
    stop_reason : str
        `eos`, `length` (max_new_tokens) or `context` (the model's positions are used up).
    seconds : float
        Wall time, prefill included.
    """

    token_ids: tuple[int, ...]
    stop_reason: str
    seconds: float


@dataclass(frozen=True)
class Cycle:
    """One cycle as it happened; what the recorder turns into a trace row.

    Attributes
    ----------
    position : int
        Index of the tree's root in the sequence.
    drafted : int
        Deepest position that this draft could have had accepted.
    path, new : list of int
        Accepted nodes (root first); their tokens and the bonus token.
    accepted : int
        Accepted length, up to an accepted EOS.
    committed : int
        Tokens added to the output.
    censored_at : int or None
        Depth behind which nothing is known: an accepted EOS, or a draft shrunk by the end of the context.
    """

    position: int
    draft: Draft
    verified: Verified
    drafted: int
    path: list[int]
    new: list[int]
    accepted: int
    committed: int
    censored_at: int | None
    stop_reason: str | None
    draft_seconds: float
    verify_seconds: float
    other_seconds: float


@dataclass(frozen=True)
class _Limit:
    """Most new tokens, the reason to stop there, and the tokens that end an output earlier."""

    tokens: int
    reason: str
    eos: frozenset[int]

    @classmethod
    def of(cls, target: Target, prompt: Sequence[int], max_new_tokens: int) -> _Limit:
        room = target.positions - len(prompt)
        if not prompt or room < 1:
            raise InputError(
                "prompt", f"{len(prompt)} tokens", f"1 to {target.positions - 1} (the model's positions less one)"
            )
        reason = "length" if max_new_tokens <= room else "context"
        return cls(min(max_new_tokens, room), reason, target.eos_token_ids)

    def cut(self, output: list[int], new: list[int]) -> str | None:
        """Add to the output what may be added of `new`; return why it ends there, or None."""
        for token in new:
            output.append(token)
            if token in self.eos:
                return "eos"
            if len(output) == self.tokens:
                return self.reason
        return None


@torch.inference_mode()
def generate(
    target: Target,
    drafter: Drafter,
    prompt: Sequence[int],
    config: GenerationConfig,
    record: Callable[[Cycle], None] | None = None,
) -> Generation:
    """Decode greedily with drafts: the same tokens as `plain`, in fewer forwards of the target.

    Raises
    ------
    InputError
        The prompt is empty or leaves no position free, or the drafter cannot make the structure.
    """
    clock = _Clock(target.device)
    limit = _Limit.of(target, prompt, config.max_new_tokens)
    read = target.prefill(prompt)
    output: list[int] = []
    new, features = [int(read.logits[-1].argmax())], read.features
    stop = limit.cut(output, new)
    drafter.start([*prompt, *new], features)
    pending = False  # whether the drafter has yet to see `new`: it does so at the head of a cycle, as part of drafting
    while stop is None:
        started = clock.now()
        if pending:
            drafter.advance(new, features)
        position = len(prompt) + len(output) - 1
        structure = shrunk(config.structure, target.positions - 1 - position)
        draft = drafter.propose(structure)
        drafted_at = clock.now()
        verified = target.verify(draft.tokens.to(target.device), *_layout(draft, target.device))
        path, bonus = greedy(draft, verified.logits)
        target.keep(draft.tree.n_nodes, path)
        verified_at = clock.now()
        new, features, pending = [*draft.tokens[path[1:]].tolist(), bonus], verified.features[path], True
        before = len(output)
        stop = limit.cut(output, new)
        drafted = min(structure.depth, draft.tree.n_nodes - 1)
        accepted, censored_at = _observed(limit.eos, new, drafted, structure.depth < config.structure.depth)
        if record is not None:
            times = drafted_at - started, verified_at - drafted_at, clock.now() - verified_at
            committed = len(output) - before
            record(Cycle(position, draft, verified, drafted, path, new, accepted, committed, censored_at, stop, *times))
    return Generation(tuple(output), stop, clock.now() - clock.start)


@torch.inference_mode()
def plain(target: Target, prompt: Sequence[int], max_new_tokens: int) -> Generation:
    """Decode greedily, one token a forward."""
    clock = _Clock(target.device)
    limit = _Limit.of(target, prompt, max_new_tokens)
    output: list[int] = []
    token = int(target.prefill(prompt).logits[-1].argmax())
    while (stop := limit.cut(output, [token])) is None:
        token = int(target.step(token).argmax())
    return Generation(tuple(output), stop, clock.now() - clock.start)


def shrunk(structure: Structure, room: int) -> Structure:
    """Return the structure cut to `room` draft positions: near the end of the context there is no place for more."""
    if structure.depth <= room:
        return structure
    if isinstance(structure, DynamicTree) and room:
        return replace(structure, depth=room)
    return ChainStructure(room)


def _layout(draft: Draft, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tree's ancestor mask, (nodes, nodes), and depths, (nodes,)."""
    return torch.tensor(draft.tree.ancestor_mask, device=device), torch.tensor(draft.tree.depths, device=device)


def _observed(eos: frozenset[int], new: list[int], drafted: int, shrunk: bool) -> tuple[int, int | None]:
    """Return (accepted length, censoring depth or None) of a cycle that verified `new`, the bonus token last."""
    for e, token in enumerate(new[:-1], start=1):
        if token in eos:
            return e, e
    return len(new) - 1, drafted if shrunk else None


class _Clock:
    """Wall time; waits for the accelerator, whose work is queued, before it reads."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.start = self.now()

    def now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()
