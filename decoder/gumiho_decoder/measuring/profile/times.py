"""What the parts of a cycle cost on this machine: step times of a model pair, as a CostProfile."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from gumiho_decoder.acceptance.stops import Stops
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Draft
from gumiho_decoder.drafters.eagle.drafter import EagleDrafter
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.logging.recorder import environment
from gumiho_decoder.measuring.profile.draft_costs import fit_draft, head_seconds
from gumiho_decoder.target import Target, Verified
from gumiho_theory import ChainStructure, CostProfile, InputError, Structure

NODES = (1, 2, 4, 8, 16, 32, 64, 128)
REPEATS = 15
DEPTH = 7  # draft positions of a profile where the drafter reaches any

Name = TypeVar("Name", bound=Hashable)


class Bench:
    """A text behind which the parts of a cycle run, again and again; each run returns its seconds.

    The host waits for the device before and after each. What a run left in the caches is taken out again, untimed.

    Parameters
    ----------
    tokens : sequence of int
        At least 4; the last is the root. The drafter takes in the last two of them, as what a cycle before accepted.
    """

    def __init__(self, target: Target, drafter: TreeDrafter, tokens: Sequence[int], config: GenerationConfig) -> None:
        self.target, self.drafter = target, drafter
        random = config.generator(target.head_device)
        self._rule, self._options = config.rule(random), config.options(random)
        self._stops = Stops.of(target, tokens, config)
        self._features = target.prefill(tokens[:-1]).features
        self._tokens = torch.tensor(tokens, device=target.head_device)
        self._nothing = torch.empty(0, dtype=torch.int64, device=target.head_device)
        self._room = min(target.positions, drafter.positions or target.positions) - len(tokens)

    def step(self) -> float:
        """Take one step of plain decoding."""
        root = int(self._tokens[-1])
        seconds, _ = self._timed(lambda: int(self._rule.pick(self.target.step(root))))
        self._forget(1)
        return seconds

    def verify(self, nodes: int) -> float:
        """Verify a chain of so many nodes, the root included."""
        rows = torch.arange(nodes, device=self._tokens.device)
        tokens, mask = self._tokens[-1 - rows % len(self._tokens)], rows[:, None] >= rows
        seconds, _ = self._timed(lambda: self.target.verify(tokens, mask, rows))
        self._forget(nodes)
        return seconds

    def draft(self, structure: Structure) -> float:
        """Take in two tokens, and draft."""
        self._restart()
        return self._timed(lambda: self._draft(structure))[0]

    def rest(self, structure: Structure) -> float:
        """Do what follows the verification of a draft: accept, cut the cache, see whether the output ends."""
        self._restart()
        draft = self._draft(structure)
        verified = self._verify(draft)
        seconds, kept = self._timed(lambda: self._accept(draft, verified))
        self._forget(kept)
        return seconds

    def cycle(self, structure: Structure) -> float:
        """Run a whole cycle."""
        self._restart()

        def run() -> int:
            draft = self._draft(structure)
            return self._accept(draft, self._verify(draft))

        seconds, kept = self._timed(run)
        self._forget(kept)
        return seconds

    # The loop's own steps, as `loop.generate` has them.

    def _draft(self, structure: Structure) -> Draft:
        self.drafter.advance(self._tokens[-2:], self._features[-2:])
        return self.drafter.propose(structure.cut(self._room), self._options)

    def _verify(self, draft: Draft) -> Verified:
        return self.target.verify(draft.tokens, self._rule.mask(draft), draft.depths)

    def _accept(self, draft: Draft, verified: Verified) -> int:
        accepted = self._rule.accept(draft, verified.logits)
        self.target.keep(draft.n_nodes, accepted.path, accepted.nodes)
        verified.features[accepted.nodes]
        self._stops.cut([], accepted.new)
        return len(accepted.path)

    def _restart(self) -> None:
        self.drafter.start(self._tokens[:-2], self._features[:-2])

    def _forget(self, rows: int) -> None:
        self.target.keep(rows, [], self._nothing)

    def _timed(self, run: Callable[[], object]) -> tuple[float, object]:
        self._wait()
        started = time.perf_counter()
        result = run()
        self._wait()
        return time.perf_counter() - started, result

    def _wait(self) -> None:
        if self.target.head_device.type != "cpu":
            torch.accelerator.synchronize(self.target.head_device)


def interleaved(
    parts: Mapping[Name, Callable[[], float]], repeats: int, progress: Callable[[], object] = lambda: None
) -> dict[Name, float]:
    """Run each part `repeats` times and return the lower quartile of the seconds it reports.

    What gets in the way only ever adds time: beside another process the median falls on either side for each part by
    chance, the quartile hardly. Every round runs all parts in another order, so that a machine that slows down slows
    all alike; two rounds before only warm up. `progress` is called after each round.
    """
    random = np.random.default_rng(0)
    names = list(parts)
    seconds: dict[Name, list[float]] = {name: [] for name in names}
    for number in range(-2, repeats):
        for index in random.permutation(len(names)).tolist():
            took = parts[names[index]]()
            if number >= 0:
                seconds[names[index]].append(took)
        progress()
    return {name: float(np.percentile(took, 25)) for name, took in seconds.items()}


def measure(
    target: Target,
    drafter: TreeDrafter,
    *,
    context: int = 128,
    nodes: Sequence[int] = NODES,
    repeats: int = REPEATS,
    structure: Structure | None = None,
    progress: Callable[[], object] = lambda: None,
) -> CostProfile:
    """Measure the step times of a model pair.

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
        Values out of range, a context that does not fit the model's positions, or a structure that the drafter cannot
        make or that leaves its parallel heads out.
    """
    (profile,) = measure_together(
        target, [drafter], context=context, nodes=nodes, repeats=repeats, structure=structure, progress=progress
    )
    return profile


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
    measured at once. See `measure`.
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
        _check(min(target.positions, drafter.positions or target.positions), context, nodes, repeats, drafted.depth)
        bench = Bench(target, drafter, text, config)
        parts |= {("step", 0): bench.step, **{("verify", n): partial(bench.verify, n) for n in nodes}}
        depths = range(1, drafted.depth + 1)
        parts |= {(index, "draft", d): partial(bench.draft, drafted.cut(d)) for d in depths}
        parts[index, "rest"] = partial(bench.rest, drafted)
        if isinstance(drafter, EagleDrafter):
            parts[index, "deeper"] = partial(Bench(target, one_layer_more(drafter), text, config).draft, drafted.cut(1))
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


def profile_pair(
    target_name: str,
    drafter_name: str,
    *,
    device: str = "cpu",
    dtype: str = "float32",
    context: int | None = None,
    structure: str | None = None,
    output: Path | None = None,
) -> CostProfile:
    """Measure a pair and write its profile; see `gumiho profile`.

    Parameters
    ----------
    target_name, drafter_name : str
        As `gumiho decode` takes them; or `random:SHAPE` (a name of `shapes.SHAPES`, or a config.json) and
        `random:METHOD`, random weights of that shape: step times do not depend on what the weights say.
    context : int, optional
        Tokens before the root; 128, or as many as a small model has room for, unless given.

    Raises
    ------
    InputError
        Anything that is wrong with the request.
    """
    from gumiho_decoder.measuring.outputs import PROFILE, check_output
    from gumiho_decoder.measuring.profile.shapes import load
    from gumiho_decoder.measuring.progress import progress

    if output is not None:
        check_output(output, PROFILE)
    asked = None if structure is None else Structure.parse(structure)
    target, drafter = load(target_name, drafter_name, dtype, device)
    ends = min(target.positions, drafter.positions or target.positions)
    nodes = [n for n in NODES if n <= max(1, ends // 2)]  # a small model has no room for the largest
    if context is None:
        context = max(3, min(128, ends - max(nodes[-1], 1 + (drafter.depth or DEPTH))))
    with progress(REPEATS + 2, "timing") as advance:
        profile = measure(target, drafter, context=context, nodes=nodes, structure=asked, progress=advance)
    if output is not None:
        profile.write(output)
    return profile
