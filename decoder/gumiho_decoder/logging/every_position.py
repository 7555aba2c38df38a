"""The every-position log: for each place of a finished output, what a cycle that started there would have given.

The target does not read the text again: its features and probabilities are those of the cycles that made the output.
The drafter is run from many places at once, each blind to what comes behind it, and compared with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gumiho_decoder.acceptance.rules import Rule
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Cycle, Generation
from gumiho_decoder.draft import Drafter, DraftOptions
from gumiho_decoder.logging.collector import Collector
from gumiho_decoder.logging.places import accepted_lengths, batches, behind_truth, check, most_places
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, EveryPositionLog, InputError, StaticTree, Structure


@dataclass(frozen=True)
class Beyond:
    """The target's own text behind the end of an output.

    Attributes
    ----------
    tokens : tuple of int
        What the last cycle verified there, then what plain steps gave.
    p_target : tuple of float
        The target's probabilities of the plain steps' tokens.
    ended : bool
        Whether a stop id is the last token of output and `tokens`: there is no text behind it.
    """

    tokens: tuple[int, ...]
    p_target: tuple[float, ...]
    ended: bool


@torch.inference_mode()
def lookahead(target: Target, generation: Generation, depth: int, rule: Rule, stop_ids: frozenset[int]) -> Beyond:
    """Decode plainly on behind an output, right after `generate` made it: the target's cache is still its own.

    `depth`: Tokens wanted; fewer where a stop id or the end of the context comes first. `rule`: Chooses them.
    `stop_ids`: Tokens that end an output.
    """
    tokens, p_target = list(generation.beyond), []
    last = (*generation.token_ids, *tokens)[-1]
    ended = generation.stop_reason == "eos"
    for place, token in enumerate(tokens, start=1):
        if token in stop_ids:
            tokens, ended = tokens[:place], True
            break
    while not ended and len(tokens) < depth and target.length < target.positions - 1:
        logits = target.step(last)
        last = int(rule.pick(logits))
        tokens.append(last)
        p_target.append(float(logits.softmax(-1)[last]))
        ended = last in stop_ids
    return Beyond(tuple(tokens), tuple(p_target), ended)


@torch.inference_mode()
def every_position(
    target: Target,
    drafter: Drafter,
    prompt: Sequence[int],
    generation: Generation,
    collected: Collector,
    structures: Sequence[Structure],
    *,
    depth: int,
    top_k: int,
    beyond: Beyond,
    options: DraftOptions = DraftOptions(),  # noqa: B008
) -> list[dict[str, Any]]:
    """Return a row for each output token but a final stop id, as `EveryPositionLog.from_rows` takes them.

    What names the prompt is left to the caller. The drafter's state becomes that of this text.

    `prompt`, `generation`, `collected`: The text, and what was gathered while it was made. `structures`: Whose accepted
    lengths are logged. Near the end of the context they are cut, as decoding cuts them. `depth`, `top_k`: Depths and
    candidates logged behind the true prefix. All is null where the true token is unknown. `beyond`: See `lookahead`;
    with fewer tokens than the deepest structure, lengths near the end are lower bounds. `options`: How candidates were
    chosen while decoding. Returns empty where there was no cycle: of an output of one token the target's features were
    never taken. Raises InputError: See `check`; or top_k above the vocabulary.
    """
    check(drafter, structures, options, depth=depth, top_k=top_k)
    if top_k > target.vocab_size:
        raise InputError("every-position log, top_k", top_k, f"at most {target.vocab_size}, the tokens")
    if not collected:
        return []
    first, known = len(prompt), [*prompt, *generation.token_ids, *beyond.tokens]
    places = range(first, first + len(generation.token_ids) - (generation.stop_reason == "eos"))
    p_target = (collected.p_target + list(beyond.p_target))[: len(known) - first - 1]
    unknown = [-1] * max(depth, *(structure.depth for structure in structures), 0)
    text = torch.tensor(known + unknown, device=target.head_device)
    ends = target.positions_with(drafter)
    read = min(places.stop, ends)
    drafter.start(text[:read], collected.features[: read - 1])

    rows: list[dict[str, Any]] = []
    for batch, room in batches(places, depth, ends, most_places(ChainStructure(depth), target.vocab_size, options)):
        drafted = behind_truth(drafter, text, batch, room, top_k)
        for index, place in enumerate(batch):
            some = max(0, min(room, len(known) - 1 - place))
            row = {name: [*values[index][:some], *[None] * (room - some)] for name, values in drafted.items()}
            row["true_token"] = [*known[place + 1 : place + 1 + some], *[None] * (room - some)]
            row["p_target"] = [*p_target[place - first : place - first + some], *[None] * (room - some)]
            rows.append({"position": place, "drafted": room, "accepted": [], "censored": [], **row})
    where = {"known": len(known), "ended": beyond.ended, "ends": ends, "vocabulary": target.vocab_size}
    for structure in structures:
        lengths = accepted_lengths(drafter, structure, options, text, places, **where)
        for row, (accepted, censored) in zip(rows, lengths, strict=True):
            row["accepted"].append(accepted)
            row["censored"].append(censored)
    rows[-1]["stop_reason"] = generation.stop_reason
    return rows


class Log:
    """Gathers the rows of an every-position log, output by output; it is as deep as its deepest structure.

    Raises
    ------
    InputError
        See `check`; or no structure, one twice, or outputs that are not the target's own text.
    """

    def __init__(self, drafter: Drafter, config: GenerationConfig, structures: Sequence[Structure], top_k: int) -> None:
        if not config.lossless:
            wanted = "exact acceptance: what would have been accepted is read off the target's own text"
            raise InputError("every-position log", config.mode, wanted)
        if not structures:
            raise InputError("every-position log, structures", "none", "at least one")
        # A file may hold another tree by the time the log is read.
        self._structures = [replace(s, source=None) if isinstance(s, StaticTree) else s for s in structures]
        texts = [str(structure) for structure in self._structures]
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise InputError("every-position log, structures", f"{twice!r} twice", "each structure once")
        self._config, self._top_k = config, top_k
        self._depth = max(structure.depth or 0 for structure in structures)
        check(drafter, structures, config.options(torch.Generator()), depth=self._depth, top_k=top_k)
        self._outputs = 0
        self._stop_ids = frozenset(config.stop_token_ids)
        self._rows: list[dict[str, Any]] = []

    def collector(self, record: Callable[[Cycle], None] | None = None) -> Collector:
        """Return what `generate` calls after each cycle of the next output, and calls `record` in turn."""
        return Collector(record)

    def add(
        self,
        target: Target,
        drafter: Drafter,
        tokens: Sequence[int],
        generation: Generation,
        collected: Collector,
        prompt_id: str,
        task: str | None,
        turn: int,
    ) -> None:
        """Log an output behind the prompt's `tokens`, right after `generate` made it.

        Raises
        ------
        InputError
            The target has read another text since.
        """
        config = self._config
        verified = len(tokens) + len(generation.token_ids) + len(generation.beyond)
        if generation.stop_reason != "eos" and target.length != verified - 1:
            raise InputError("target", f"{target.length} tokens in its cache", f"{verified - 1}, as `generate` left it")
        # Other draws than those of any output; like them they depend on the seed and the output's place alone.
        seed = np.random.SeedSequence((config.seed, self._outputs), spawn_key=(1,)).generate_state(1, np.uint64)[0]
        random = torch.Generator(target.head_device).manual_seed(int(seed >> np.uint64(1)))
        self._stop_ids |= target.eos_token_ids
        beyond = lookahead(target, generation, self._depth, config.rule(random), self._stop_ids)
        settings = {"depth": self._depth, "top_k": self._top_k, "beyond": beyond, "options": config.options(random)}
        rows = every_position(target, drafter, tokens, generation, collected, self._structures, **settings)
        name = {"prompt_id": prompt_id, "task": task, "turn": turn}
        self._rows += [name | row for row in rows]
        self._outputs += 1

    def __bool__(self) -> bool:
        """Whether anything was logged."""
        return bool(self._rows)

    def made(self, provenance: dict[str, Any]) -> EveryPositionLog:
        """Return what was logged so far.

        A `top_k` in the provenance is the target's, for sampling: in this log the name is taken by the number of
        candidates, so that it becomes `sampling_top_k`.
        """
        facts = {"sampling_top_k" if name == "top_k" else name: value for name, value in provenance.items()}
        own = {
            "top_k": self._top_k,
            "depth": self._depth,
            "structures": [str(s) for s in self._structures],
            "stop_ids": sorted(self._stop_ids),
            "temperature": self._config.temperature,
            "candidates": self._config.candidates,
        }
        return EveryPositionLog.from_rows(self._rows, facts | own)
