"""The parts of a cycle, each run and timed behind a fixed text; and timing many parts in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch

from gumiho_decoder.acceptance.stops import Stops
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Draft
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.target import Target, Verified
from gumiho_theory import Structure

Name = TypeVar("Name", bound=Hashable)


class CycleParts:
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
        self._room = target.positions_with(drafter) - len(tokens)

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

    def whole(self, structure: Structure) -> float:
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
