"""Texts that the target itself writes: a drafter trained on them learns what it will be asked for."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from gumiho_decoder.drafters.files.fingerprint import fingerprint
from gumiho_decoder.target import Target
from gumiho_theory import InputError
from gumiho_theory.files import reason, write_atomically


def continue_texts(
    target: Target,
    prompts: Sequence[list[int]],
    *,
    new_tokens: int,
    temperature: float,
    seed: int,
    batch: int,
    start: int = 0,
) -> Iterator[list[int]]:
    """Yield, in the order of the prompts, the tokens that transformers' `generate` puts behind each.

    Prompts of equal length are continued together, so that none is padded. What is drawn depends on `seed`, `batch`
    and the prompts, not on where one starts.

    `prompts`: Prompt tokens. `new_tokens`: Most tokens of a continuation, its end token included. `temperature`: 0:
    greedy; else the target's distribution at this temperature, whole. `batch`: Most prompts continued together.
    `start`: The first prompt whose continuation is yielded. Raises InputError: A value out of range, or a prompt that
    is empty or leaves no room for `new_tokens`; before anything is made.
    """
    _check(target, prompts, new_tokens, temperature, seed, batch)
    waiting: dict[int, list[int]] = {}
    following = start
    for group in _groups([len(prompt) for prompt in prompts], batch):
        if group[-1] < start:
            continue
        drawn = np.random.SeedSequence((seed, group[0])).generate_state(1, np.uint64)[0] >> np.uint64(1)
        texts = _generate(target, [prompts[index] for index in group], new_tokens, temperature, int(drawn))
        waiting.update(zip(group, texts, strict=True))
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def _check(
    target: Target, prompts: Sequence[list[int]], new_tokens: int, temperature: float, seed: int, batch: int
) -> None:
    for name, value in (("new_tokens", new_tokens), ("batch", batch)):
        if value < 1:
            raise InputError(name, value, "at least 1")
    if not (math.isfinite(temperature) and temperature >= 0):
        raise InputError("temperature", temperature, "0, or a finite number above it")
    if seed < 0:
        raise InputError("seed", seed, "0 or more")
    room = target.positions - new_tokens
    for number, prompt in enumerate(prompts, 1):
        if not 1 <= len(prompt) <= room:
            raise InputError(f"prompt {number}", f"{len(prompt)} tokens", f"1 to {room} before {new_tokens} new ones")


def _groups(lengths: list[int], batch: int) -> list[list[int]]:
    """Return the prompts continued together, ascending, each group of one length; by their first."""
    alike: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        alike.setdefault(length, []).append(index)
    return sorted(same[at : at + batch] for same in alike.values() for at in range(0, len(same), batch))


@torch.inference_mode()
def _generate(
    target: Target, prompts: list[list[int]], new_tokens: int, temperature: float, seed: int
) -> list[list[int]]:
    ids = torch.tensor(prompts, device=target.device)
    # What the checkpoint's own generation settings would add is switched off.
    settings = {
        "top_k": 0,
        "top_p": 1.0,
        "repetition_penalty": 1.0,
        "pad_token_id": min(target.eos_token_ids, default=0),
    }
    settings |= {"do_sample": True, "temperature": temperature} if temperature > 0 else {"do_sample": False}
    accelerators = range(torch.cuda.device_count()) if target.device.type == "cuda" else ()
    with torch.random.fork_rng(devices=accelerators):  # `generate` draws from the global generator only
        torch.manual_seed(seed)
        out = target.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new_tokens, **settings)
    return [_to_end(row, target.eos_token_ids) for row in out[:, ids.shape[1] :].tolist()]


def _to_end(tokens: list[int], ends: frozenset[int]) -> list[int]:
    """Cut behind the first end token: what follows pads the batch."""
    return tokens[: next((index + 1 for index, token in enumerate(tokens) if token in ends), len(tokens))]


def write_continuations(
    target: Target,
    prompts: Sequence[list[int]],
    sources: Sequence[str],
    path: Path,
    *,
    new_tokens: int,
    temperature: float,
    seed: int,
    batch: int,
    progress: Callable[[int], object] = lambda done: None,
) -> None:
    """Write prompts with their continuations as JSON lines, {"text": …, "source": …}.

    What is finished of an interrupted call stands in `path` with .part behind it, and is taken up by the same call;
    `path` itself appears when all is done. `progress` is given the number of texts done.

    Raises InputError: See `continue_texts`; or `path` is there already, or the .part is of another call.
    """
    _check(target, prompts, new_tokens, temperature, seed, batch)
    if len(sources) != len(prompts):
        raise InputError("sources", f"{len(sources)} names", f"{len(prompts)}, one for each prompt")
    if path.exists():
        raise InputError(path, "a file that is there already", "a new name, or that file removed")
    settings = {"new_tokens": new_tokens, "temperature": temperature, "seed": seed, "batch": batch}
    data = hashlib.sha256(json.dumps([list(prompts), list(sources)]).encode()).hexdigest()
    request = {"target": fingerprint(target.model), "data": data, **settings}
    part = path.with_name(path.name + ".part")
    try:
        done = _taken_up(part, request, sources)
        with part.open("a", encoding="utf-8") as file:
            progress(done)
            for tokens in continue_texts(target, prompts, **settings, start=done):
                text = target.decode([*prompts[done], *tokens])
                file.write(json.dumps({"text": text, "source": sources[done]}) + "\n")
                file.flush()
                done += 1
                progress(done)
        with part.open("rb") as file:
            file.readline()
            write_atomically(path, lambda whole: shutil.copyfileobj(file, whole))
        part.unlink()
    except OSError as error:
        raise InputError(part, reason(error), "a file that can be written in an existing folder") from error


def _taken_up(part: Path, request: dict[str, object], sources: Sequence[str]) -> int:
    """Leave a .part that holds its request and whole lines only; return how many texts those are."""
    header = (json.dumps(request) + "\n").encode()
    kept = part.read_bytes() if part.exists() else b""
    kept = kept[: kept.rfind(b"\n") + 1]  # an interrupted line is made anew
    lines = kept.splitlines()[1:]
    try:
        foreign = kept and (
            not kept.startswith(header) or [json.loads(line)["source"] for line in lines] != list(sources[: len(lines)])
        )
    except (ValueError, KeyError, TypeError):
        foreign = True
    if foreign:
        raise InputError(part, "another call's continuations", "the same call's, or that file removed")
    with part.open("r+b" if kept else "wb") as file:
        file.truncate(len(kept))
        if not kept:
            file.write(header)
    return len(lines)
