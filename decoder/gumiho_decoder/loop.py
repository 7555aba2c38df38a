"""Speculative decoding, one readable loop; and plain decoding, which it must equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from gumiho_decoder.acceptance.stops import Stops
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Clock, Cycle, Generation
from gumiho_decoder.draft import Drafter
from gumiho_decoder.target import Target
from gumiho_theory import AutoStructure, InputError


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
        The prompt is empty or leaves no position free, the structure is `auto` or one that the drafter cannot make, or
        the calibration is another drafter's.
    """
    structure = config.structure
    if isinstance(structure, AutoStructure):
        raise InputError("structure", "auto", "a structure: gumiho_decoder.choose finds one for a pair and its prompts")
    if config.calibration is not None:
        config.calibration.check_drafter(drafter.fingerprint)
    clock, stops = Clock(target.head_device), Stops.of(target, prompt, config)
    random = config.generator(target.head_device)
    rule, options = config.rule(random), config.options(random)
    ends = target.positions_with(drafter)
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
            marks = started, drafted, judged, clock.mark()
            cut, committed = asked.depth < structure.depth, len(new) - beyond
            ending = {"stop_ids": stops.ids, "cut": cut, "committed": committed, "stop_reason": stop}
            record(Cycle.of(position, features, draft, verified, accepted, marks, **ending))
            clock.aside(marks[-1])
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
