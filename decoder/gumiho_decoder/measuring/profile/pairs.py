"""Cost profiles of model pairs: which parts of a cycle are timed, and the profile they make."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.eagle.drafter import EagleDrafter
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.logging.recorder import environment
from gumiho_decoder.measuring.outputs import PROFILE, check_place
from gumiho_decoder.measuring.profile import shapes
from gumiho_decoder.measuring.profile.draft_costs import fit_draft, head_seconds
from gumiho_decoder.measuring.profile.parts import CycleParts, interleaved
from gumiho_decoder.measuring.progress import progress as progress_bar
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, CostProfile, InputError, Structure

NODES = (1, 2, 4, 8, 16, 32, 64, 128)
REPEATS = 15
DEPTH = 7  # draft positions of a profile where the drafter reaches any


def profile_pair(
    target: str,
    drafter: str,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    context: int | None = None,
    structure: str | None = None,
    output: Path | None = None,
) -> CostProfile:
    """Load a pair, measure its step times and write its profile: what `gumiho profile` does.

    Parameters
    ----------
    target, drafter : str
        As `gumiho decode` takes them; or `random:SHAPE` (a name of `shapes.SHAPES`, or a config.json) and
        `random:METHOD`, random weights of that shape: step times do not depend on what the weights say.
    context : int, optional
        Tokens before the root; 128, or as many as a small model has room for, unless given.

    Raises
    ------
    InputError
        Anything that is wrong with the request.
    """
    if output is not None:
        check_place(output, PROFILE)
    asked = None if structure is None else Structure.parse(structure)
    loaded, drafting = shapes.load(target, drafter, dtype, device)
    ends = loaded.positions_with(drafting)
    nodes = [n for n in NODES if n <= max(1, ends // 2)]  # a small model has no room for the largest
    if context is None:
        context = max(3, min(128, ends - max(nodes[-1], 1 + (drafting.depth or DEPTH))))
    with progress_bar(REPEATS + 2, "timing") as advance:
        profile = measure(loaded, drafting, context=context, nodes=nodes, structure=asked, progress=advance)
    if output is not None:
        profile.write(output)
    return profile


def measure(target: Target, drafter: TreeDrafter, **settings: Any) -> CostProfile:
    """Measure the step times of one model pair; see `measure_together`."""
    return measure_together(target, [drafter], **settings)[0]


@torch.inference_mode()
def measure_together(
    target: Target,
    drafters: Sequence[TreeDrafter],
    *,
    context: int = 128,
    nodes: Sequence[int] = NODES,
    repeats: int = REPEATS,
    structure: Structure | None = None,
    progress: Callable[[], object] = lambda: None,
) -> list[CostProfile]:
    """Measure the step times of several drafters of one target, all in each round.

    On a machine that is shared, times of minutes ago are not those of now: drafters that are to be compared are
    measured at once.

    Parameters
    ----------
    context : int
        Tokens before the root, of a text that repeats itself (so that n-grams find something).
    nodes : sequence of int
        Numbers of tokens, root included, whose verification is timed.
    repeats : int
        Rounds; see `interleaved`.
    structure : Structure, optional
        What is drafted, at each depth up to its own; a chain as deep as the drafter reaches (7 where it reaches any).
        A draft's time has taking in the accepted tokens in it, as the trace's `draft_seconds` do. `other_seconds` is
        what follows the verification of the whole structure.
    progress : callable
        Called after each of the `repeats` + 2 rounds.

    Raises
    ------
    InputError
        Values out of range, a context that does not fit the model's positions, or a structure that a drafter cannot
        make or that leaves its parallel heads out.
    """
    parts: dict[Hashable, Callable[[], float]] = {}
    asked = [ChainStructure(drafter.depth or DEPTH) if structure is None else structure for drafter in drafters]
    text = np.random.default_rng(0).integers(target.vocab_size, size=16).tolist() * (context // 16 + 1)
    text = text[: context + 1]
    for index, (drafter, drafted) in enumerate(zip(drafters, asked, strict=True)):
        config = GenerationConfig(structure=drafted)
        drafter.check(drafted, config.options(config.generator(target.head_device)))
        serial = drafter.serial_steps
        if serial is not None and drafted.depth <= serial and drafter.depth != serial:
            raise InputError("structure", drafted, f"deeper than the {serial} serial steps of drafter {drafter.name!r}")
        _check(target.positions_with(drafter), context, nodes, repeats, drafted.depth)
        cycle = CycleParts(target, drafter, text, config)
        parts |= {("step", 0): cycle.step, **{("verify", n): partial(cycle.verify, n) for n in nodes}}
        depths = range(1, drafted.depth + 1)
        parts |= {(index, "draft", d): partial(cycle.draft, drafted.cut(d)) for d in depths}
        parts[index, "rest"] = partial(cycle.rest, drafted)
        if isinstance(drafter, EagleDrafter):
            parts[index, "deeper"] = partial(
                CycleParts(target, one_layer_more(drafter), text, config).draft, drafted.cut(1)
            )
    seconds = interleaved(parts, repeats, progress)
    return [
        _profile(target, drafter, drafted.depth, nodes, seconds, index)
        for index, (drafter, drafted) in enumerate(zip(drafters, asked, strict=True))
    ]


def _profile(
    target: Target,
    drafter: TreeDrafter,
    depth: int,
    nodes: Sequence[int],
    seconds: Mapping[Hashable, float],
    index: int,
) -> CostProfile:
    drafted = [seconds[index, "draft", d] for d in range(1, depth + 1)]
    serial = drafter.serial_steps
    costs = fit_draft(drafted, serial)
    deeper = seconds.get((index, "deeper"))
    heads = 0 if serial is None else max(0, depth - serial)
    head = head_seconds(drafted[-heads:]) if heads > 1 else None
    return CostProfile(
        target=target.name,
        drafter=drafter.name,
        device=device_name(target),
        dtype=str(target.dtype).removeprefix("torch."),
        baseline_seconds=seconds["step", 0],
        verify_nodes=tuple(nodes),
        verify_seconds=tuple(seconds["verify", n] for n in nodes),
        draft_serial_seconds=costs.serial,
        # The fit is the mean over 1 to all heads; the profile's is the time of all.
        draft_parallel_seconds=costs.parallel + (head or 0.0) * (heads - 1) / 2,
        serial_steps=costs.serial_steps,
        other_seconds=seconds[index, "rest"],
        draft_fixed_seconds=costs.fixed,
        serial_layers=drafter.config.serial_layers if isinstance(drafter, EagleDrafter) else None,
        layer_seconds=None if deeper is None else max(0.0, deeper - drafted[0]),
        parallel_heads=heads or None,
        head_seconds=head,
    )


def one_layer_more(drafter: EagleDrafter) -> EagleDrafter:
    """Return a copy of a drafter whose serial step has its last layer twice: what takes its time, not what it says."""
    model = copy.deepcopy(drafter.model)
    layer = copy.deepcopy(model.serial.layers[-1])
    layer.self_attn.layer_idx = len(model.serial.layers)
    model.serial.layers.append(layer)
    model.serial.config.num_hidden_layers += 1
    return type(drafter)(model, drafter.target, drafter.name)


def device_name(target: Target) -> str:
    """Return what the times hold for: the device, and on a CPU the threads too."""
    facts = environment(target.device, target.dtype)
    return facts["device"] + (f", {facts['threads']} threads" if target.device.type == "cpu" else "")


def _check(positions: int, context: int, nodes: Sequence[int], repeats: int, depth: int) -> None:
    if repeats < 1:
        raise InputError("repeats", repeats, "at least 1")
    if not nodes or any(low >= high for low, high in zip((0, *nodes), nodes, strict=False)):
        raise InputError("nodes", list(nodes), "ascending numbers of at least 1")
    most = positions - max(nodes[-1], depth + 1)
    if not 3 <= context <= most:
        behind = f"{positions} positions, {nodes[-1]} nodes behind it"
        raise InputError("context", f"{context} tokens", f"3 to {most} ({behind})")
