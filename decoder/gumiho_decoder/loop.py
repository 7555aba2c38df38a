"""Speculative decoding, one readable loop; and plain decoding, which it must equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from gumiho_decoder.clock import Clock, Mark, between
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.base import Draft, Drafter
from gumiho_decoder.stops import Stops
from gumiho_decoder.target import Target, Verified
from gumiho_decoder.verify import Accepted
from gumiho_theory import AutoStructure


@dataclass(frozen=True)
class Generation:
    """One output.

    Attributes
    ----------
    token_ids : tuple of int
        New tokens, EOS included.
    stop_reason : str
        `eos`, `stop_string`, `length` (max_new_tokens) or `context` (the model's positions are used up).
    seconds : float
        Wall time, prefill included.
    first_seconds : float
        Of it, the time until the first token: prefill.
    beyond : tuple of int
        Tokens that the last cycle verified behind the end of the output.
    """

    token_ids: tuple[int, ...]
    stop_reason: str
    seconds: float
    first_seconds: float = 0.0
    beyond: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cycle:
    """One cycle as it happened; what the recorder turns into a trace row.

    Attributes
    ----------
    position : int
        Index of the tree's root in the sequence.
    context : Tensor, shape (tokens, H)
        Features that the drafter took in before this draft: of the prompt, then of the path accepted before.
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
    context: torch.Tensor
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


@torch.inference_mode()
def generate(
    target: Target,
    drafter: Drafter,
    prompt: Sequence[int],
    config: GenerationConfig,
    record: Callable[[Cycle], None] | None = None,
) -> Generation:
    """Decode with drafts: what `plain` would have written, in fewer forwards of the target.

    Raises
    ------
    InputError
        The prompt is empty or leaves no position free, or the drafter cannot make the structure.
    """
    clock, stops = Clock(target.head_device), Stops.of(target, prompt, config)
    structure, random = _structure(target, drafter, prompt, config), config.generator(target.head_device)
    rule, options = config.rule(random), config.options(random)
    ends = min(target.positions, drafter.positions or target.positions)
    read = target.prefill(prompt)
    features, tokens = read.features, rule.pick(read.logits[-1])[None]
    output: list[int] = []
    new, beyond = tokens.tolist(), 0
    first = clock.seconds()
    stop = stops.cut(output, new)
    begin = partial(drafter.start, torch.cat([torch.tensor(prompt, device=tokens.device), tokens]))
    while stop is None:
        started = clock.mark()
        begin(features)
        position = len(prompt) + len(output) - 1
        asked = structure.cut(max(0, ends - 1 - position))
        draft = drafter.propose(asked, options)
        drafted = clock.mark()
        verified = target.verify(draft.tokens, rule.mask(draft), draft.depths)
        judged = clock.mark()
        accepted = rule.accept(draft, verified.logits)
        target.keep(draft.n_nodes, accepted.path, accepted.nodes)
        new, known = accepted.new, len(output)
        stop = stops.cut(output, new)
        beyond = known + len(new) - len(output)
        if record is not None:
            ended = clock.mark()
            cut = asked.depth < structure.depth
            outcome = _outcome(stops.ids, new, draft.depth, cut), len(output) - known, stop
            record(_cycle(position, features, draft, verified, accepted, outcome, (started, drafted, judged, ended)))
            clock.aside(ended)
        features = verified.features[accepted.nodes]
        begin = partial(drafter.advance, accepted.tokens)
    after = new[len(new) - beyond :] if stop != "eos" else []
    return Generation(tuple(output), stop, clock.seconds(), first, tuple(after))


@torch.inference_mode()
def plain(target: Target, prompt: Sequence[int], config: GenerationConfig) -> Generation:
    """Decode one token a forward; of `config` only what concerns the target counts."""
    clock, stops = Clock(target.head_device), Stops.of(target, prompt, config)
    rule = config.rule(config.generator(target.head_device))
    output: list[int] = []
    token = int(rule.pick(target.prefill(prompt).logits[-1]))
    first = clock.seconds()
    while (stop := stops.cut(output, [token])) is None:
        token = int(rule.pick(target.step(token)))
    return Generation(tuple(output), stop, clock.seconds(), first)


def _structure(target: Target, drafter: Drafter, prompt: Sequence[int], config: GenerationConfig):
    """Return the structure asked for, chosen if it is `auto`; refuse the calibration of another drafter."""
    if config.calibration is not None:
        config.calibration.check_drafter(drafter.fingerprint)
    if not isinstance(config.structure, AutoStructure):
        return config.structure
    from gumiho_decoder.auto import choose

    return choose(target, drafter, [prompt], config).structure


def _outcome(ids: frozenset[int], new: list[int], drafted: int, cut: bool) -> tuple[int, int | None]:
    """Return (accepted length, censoring depth or None) of a cycle that verified `new`, the bonus token last."""
    for e, token in enumerate(new[:-1], start=1):
        if token in ids:
            return e, e
    return len(new) - 1, drafted if cut else None


def _cycle(
    position: int,
    context: torch.Tensor,
    draft: Draft,
    verified: Verified,
    accepted: Accepted,
    outcome: tuple[tuple[int, int | None], int, str | None],
    marks: tuple[Mark, Mark, Mark, Mark],
) -> Cycle:
    (length, censored_at), committed, stop = outcome
    started, drafted, judged, ended = marks
    draft_seconds, verify_seconds = between(started, drafted), between(drafted, judged)
    return Cycle(
        position,
        context,
        draft,
        verified,
        draft.depth,
        accepted.path,
        accepted.new,
        length,
        committed,
        censored_at,
        stop,
        draft_seconds,
        verify_seconds,
        max(0.0, ended.host - started.host - draft_seconds - verify_seconds),
    )
