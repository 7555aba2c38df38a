"""Decoding a set of prompts, beside plain decoding and transformers' `generate`; times and comparisons."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Generation
from gumiho_decoder.draft import Drafter
from gumiho_decoder.logging.every_position import Log
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import Comparison, compare
from gumiho_decoder.measuring.prompts import Prompt
from gumiho_decoder.target import Target
from gumiho_theory import InputError


@dataclass(frozen=True)
class Output:
    """What one turn of one prompt gave.

    Attributes
    ----------
    plain, library : Generation or None
        The plain loop's and `generate`'s output for the same prompt, where asked for.
    comparison : Comparison or None
        Beside the plain loop's, where asked for.
    """

    prompt_id: str
    task: str | None
    turn: int
    prompt: tuple[int, ...]
    text: str
    speculative: Generation
    plain: Generation | None
    library: Generation | None
    comparison: Comparison | None


@dataclass(frozen=True)
class RunConfig:
    """What is done with each prompt beside speculative decoding.

    Attributes
    ----------
    plain : bool
        Also decode plainly, for speed.
    check : bool
        Also compare with plain decoding.
    library : int
        For this many prompts, spread evenly, also time transformers' `generate`.
    """

    plain: bool = False
    check: bool = False
    library: int = 0


def run(
    target: Target,
    drafter: Drafter,
    prompts: Sequence[Prompt],
    generation: GenerationConfig,
    config: RunConfig,
    recorder: Recorder,
    progress: Callable[[Output], None],
    log: Log | None = None,
) -> list[Output]:
    """Decode every prompt; `progress` is called after each turn.

    Raises
    ------
    InputError
        A prompt does not fit the model: for first turns this is found before anything is decoded.
    """
    for prompt in prompts:
        encode(target, prompt, [], drafter)
    _warm_up(target, drafter, prompts[0], generation)
    chosen = {round(i * (len(prompts) - 1) / max(1, config.library - 1)) for i in range(config.library)}
    greedy = GenerationConfig(generation.max_new_tokens)
    outputs = []
    for index, prompt in enumerate(prompts):
        replies: list[str] = []
        for turn in range(len(prompt.turns)):
            tokens = encode(target, prompt, replies, drafter)
            # An output's draws depend on the seed and its place alone, not on how long the outputs before it were.
            asked = replace(generation, seed=place_seed(generation.seed, index, turn))
            name = prompt.prompt_id, prompt.task, turn
            beside = None
            # Who goes first alternates, so that neither always finds the caches warm.
            for who in ("plain", "drafts") if index % 2 else ("drafts", "plain"):
                if who == "drafts":
                    record = recorder.prompt(*name)
                    collector = record if log is None else log.collector(record)
                    made = generate(target, drafter, tokens, asked, collector)
                    if log is not None:
                        log.add(target, drafter, tokens, made, collector, *name)
                elif config.plain or config.check:
                    beside = plain(target, tokens, asked)
            output = Output(
                *name,
                prompt=tuple(tokens),
                text=target.decode(made.token_ids),
                speculative=made,
                plain=beside,
                library=library(target, tokens, greedy) if index in chosen else None,
                comparison=compare(target, tokens, beside.token_ids, made.token_ids) if config.check else None,
            )
            replies.append(output.text)
            outputs.append(output)
            progress(output)
    return outputs


def encode(target: Target, prompt: Prompt, replies: Sequence[str], drafter: Drafter | None = None) -> list[int]:
    """Return the tokens of the conversation so far; chat prompts take the tokenizer's template, if it has one.

    Raises InputError: They do not fit the target, or the drafter where that has fewer positions.
    """
    turn = len(replies)
    if prompt.chat and target.tokenizer.chat_template:
        said = [{"role": "user", "content": prompt.turns[0]}]
        for reply, question in zip(replies, prompt.turns[1:], strict=False):
            said += [{"role": "assistant", "content": reply}, {"role": "user", "content": question}]
        try:
            text = target.tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # a template is a program, which fails as it likes
            found = f"{type(error).__name__}: {error}"
            raise InputError(f"target {target.name!r}, chat template", found, "one that renders turns") from error
        tokens = target.tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        parts = [part for pair in zip(prompt.turns, replies, strict=False) for part in pair]
        tokens = target.encode("\n".join([*parts, prompt.turns[turn]]))
    models = [(f"target {target.name!r}", target.positions)]
    if drafter is not None and drafter.positions is not None:
        models.append((f"drafter {drafter.name!r}", drafter.positions))
    for name, positions in models:
        if not 1 <= len(tokens) < positions:
            where, wanted = f"prompt {prompt.prompt_id!r}, turn {turn}", f"1 to {positions - 1}"
            raise InputError(where, f"{len(tokens)} tokens", f"{wanted} ({name} has {positions} positions)")
    return tokens


def _warm_up(target: Target, drafter: Drafter, prompt: Prompt, generation: GenerationConfig) -> None:
    tokens = encode(target, prompt, [])
    few = replace(generation, max_new_tokens=min(16, generation.max_new_tokens))
    for _ in range(2):
        generate(target, drafter, tokens, few)
        plain(target, tokens, few)


def place_seed(seed: int, index: int, turn: int) -> int:
    """Return the seed of an output's draws: of the run's seed and the output's place alone."""
    return int(np.random.SeedSequence((seed, index, turn)).generate_state(1, np.uint64)[0] >> np.uint64(1))


@torch.inference_mode()
def library(target: Target, text: Sequence[int], config: GenerationConfig) -> Generation:
    """Decode with transformers' own `generate`, at the same temperature."""
    started = time.perf_counter()
    ids = torch.tensor([list(text)], device=target.device)
    room = min(config.max_new_tokens, target.positions - len(text))
    how: dict[str, Any] = {"do_sample": False}
    if config.temperature:
        how = {"do_sample": True, "temperature": config.temperature, "top_k": 0, "top_p": 1.0}
    how |= {"max_new_tokens": room, "pad_token_id": min(target.eos_token_ids, default=0)}
    # `generate` takes no generator: it draws from the global one, which is left as it was found.
    with torch.random.fork_rng([target.device] if target.device.type == "cuda" else []):
        torch.manual_seed(config.seed)
        out = target.model.generate(ids, attention_mask=torch.ones_like(ids), **how)
    new = out[0, len(text) :].tolist()
    stop = "eos" if new[-1] in target.eos_token_ids else "length"
    return Generation(tuple(new), stop, time.perf_counter() - started)
