"""Outputs with their every-position log, and drafters that are often right; used by the decoder's tests."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cache

import torch
from hypothesis import strategies as st

from fakes import VOCAB, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter
from gumiho_decoder.logging.collector import Collector
from gumiho_decoder.logging.every_position import Log
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, DynamicTree, StaticTree, Structure
from scripted import ScriptedDrafter, mixed

PROMPT = [5, 17, 3, 44, 20, 8, 8, 31]
STATIC = StaticTree(((1,), (2,), (3,), (1, 1), (1, 2), (2, 1), (1, 1, 1), (1, 2, 1), (1, 1, 1, 1)))
STRUCTURES: list[Structure] = [
    ChainStructure(1),
    ChainStructure(6),
    STATIC,
    DynamicTree(total=12, top_k=3, depth=5, mlp_topk=4),
    DynamicTree(total=20, top_k=4, depth=6, mlp_topk=5, pruning=3),
]


@cache
def text(seed: int, count: int) -> tuple[int, ...]:
    return plain(random_target(seed), PROMPT, GenerationConfig(count)).token_ids


def scripted(seed=0, rank=mixed, serial_steps=None):
    return ScriptedDrafter([*PROMPT, *text(seed, 80)], VOCAB, rank, serial_steps)


def logged(target, drafter, config, structures=STRUCTURES, top_k=3):
    """Run once, with `config`'s structure: its trace, its text, and the log of `structures` from that run alone."""
    recorder, log = Recorder(), Log(drafter, config, structures, top_k)
    collector = log.collector(recorder.prompt("a", "task", 0))
    out = generate(target, drafter, PROMPT, config, collector)
    log.add(target, drafter, PROMPT, out, collector, "a", "task", 0)
    return recorder.trace({}), out, log.made({"drafter": drafter.name, "top_k": config.top_k})


def chain_cycles(accepted: Sequence[int], tokens: int) -> Iterator[int]:
    """Yield the accepted length of each cycle of a real run, read off the lengths from every place.

    Parameters
    ----------
    accepted : sequence of int
        From each output token, in order.
    tokens : int
        Output tokens. The first comes without a cycle; behind the last none starts.
    """
    start = 0
    while start < tokens - 1:
        yield int(accepted[start])
        start += int(accepted[start]) + 1


@st.composite
def structures(draw):
    kind = draw(st.sampled_from(["chain", "static", "tree"]))
    if kind == "chain":
        return ChainStructure(draw(st.integers(1, 6)))
    if kind == "static":
        leaves = draw(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=5), min_size=1, max_size=4))
        return StaticTree(tuple({tuple(leaf[:n]) for leaf in leaves for n in range(1, len(leaf) + 1)}))
    k, pruning = draw(st.integers(1, 4)), draw(st.none() | st.integers(1, 4))
    return DynamicTree(draw(st.integers(7, 16)), k, draw(st.integers(1, 6)), draw(st.integers(1, 5)), pruning)


def perturbed(target, positions=None, noise=0.03):
    """A draft model that is often right, as a trained one: the target itself with its weights shaken."""
    model = copy.deepcopy(target.model)
    torch.manual_seed(1)
    for parameter in model.parameters():
        parameter.add_(noise * parameter.std() * torch.randn_like(parameter))
    if positions is not None:
        model.config.max_position_embeddings = positions
    return DraftModelDrafter(Target(model, target.tokenizer, "perturbed"), target, "perturbed")


def collected(target, drafter, config):
    collector = Collector()
    return generate(target, drafter, PROMPT, config, collector), collector
