"""Accepted lengths in their order: what each output's cycles showed, one small code a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_simulator.acceptance.observed.counts import freeze
from gumiho_theory import InputError, Trace
from gumiho_theory.logs.schema import group_codes
from gumiho_theory.types import IntArray

MAX_CYCLES = 5_000_000
_MAX_DEPTH = 512


@dataclass(frozen=True, eq=False)
class CycleLog:
    """The cycles of every output in order: O outputs (prompt and turn), C cycles in all.

    `depth` is that of the deepest draft, D. Prompts are distinct; `prompt_of` [O] is each output's, by index, and
    `starts` [O + 1] where its codes begin, the last entry being C. The `codes` [C] are three for each accepted length
    L: 3 L, position L + 1 was tried and refused; 3 L + 1, the draft ended there, all accepted, and the target's own
    token followed; 3 L + 2, nothing is known beyond L (an end of text).
    """

    depth: int
    prompts: tuple[str, ...]
    prompt_of: IntArray
    starts: IntArray
    codes: IntArray

    def __post_init__(self) -> None:
        freeze(self, "prompt_of", "starts", "codes")

    @classmethod
    def of(cls, trace: Trace) -> CycleLog:
        """Read the order of a trace's cycles; InputError for more than 5,000,000."""
        if trace.n_cycles > MAX_CYCLES:
            raise InputError("cycles in order", trace.n_cycles, f"at most {MAX_CYCLES}; take fewer prompts")
        prompt = group_codes(trace.prompt_id)
        order = np.lexsort((trace.cycle, trace.turn, prompt))
        limit = np.where(trace.complete, trace.drafted, trace.censored_at)
        end = np.where(trace.complete, 1, 2)
        codes = 3 * trace.accepted + np.where(trace.accepted < limit, 0, end)
        first = np.flatnonzero(trace.cycle[order] == 0)
        return cls(trace.depth, trace.prompts, prompt[order][first], np.append(first, trace.n_cycles), codes[order])

    def select(self, prompts: Sequence[str]) -> CycleLog:
        """Return the outputs of some prompts, in the order asked for; InputError where one does not occur."""
        place = {prompt: index for index, prompt in enumerate(self.prompts)}
        for prompt in prompts:
            if prompt not in place:
                raise InputError("prompts", repr(prompt), f"one of the {len(place)} prompts")
        new = np.full(len(self.prompts), -1)
        new[[place[prompt] for prompt in prompts]] = np.arange(len(prompts))
        outputs = np.flatnonzero(new[self.prompt_of] >= 0)
        outputs = outputs[np.argsort(new[self.prompt_of[outputs]], kind="stable")]
        pieces = [self.codes[self.starts[o] : self.starts[o + 1]] for o in outputs]
        sizes = np.array([len(piece) for piece in pieces], dtype=np.int64)
        codes = np.concatenate([*pieces, np.zeros(0, dtype=np.int64)])
        return CycleLog(self.depth, tuple(prompts), new[self.prompt_of[outputs]], np.cumsum([0, *sizes]), codes)

    def to_json(self) -> dict[str, Any]:
        """Return the log as JSON values: an output is its prompt's index and its codes as text."""
        outputs = [
            [int(prompt), " ".join(map(str, self.codes[a:b].tolist()))]
            for prompt, a, b in zip(self.prompt_of, self.starts[:-1], self.starts[1:], strict=True)
        ]
        return {"depth": self.depth, "prompts": list(self.prompts), "outputs": outputs}

    @classmethod
    def from_json(cls, data: Any, prompts: tuple[str, ...]) -> CycleLog:
        """Read what `to_json` returned, of the same prompts as the counts beside it; InputError names the place."""
        if not isinstance(data, dict) or not isinstance(data.get("outputs"), list):
            raise InputError("cycles", type(data).__name__, "an object with depth, prompts and outputs")
        depth = data.get("depth")
        if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= _MAX_DEPTH:
            raise InputError("cycles, depth", repr(depth), f"a whole number up to {_MAX_DEPTH}")
        if data.get("prompts") != list(prompts):
            raise InputError("cycles, prompts", "others than the counts'", "the same prompts in the same order")
        owners: list[int] = []
        pieces: list[IntArray] = []
        for number, output in enumerate(data["outputs"]):
            place = f"cycles, output {number}"
            if not isinstance(output, list) or len(output) != 2:
                raise InputError(place, repr(output)[:40], "a prompt's index and codes")
            owner, text = output
            if isinstance(owner, bool) or not isinstance(owner, int) or not 0 <= owner < len(prompts):
                raise InputError(place, repr(owner), f"a prompt's index, 0 to {len(prompts) - 1}")
            words = text.split(" ") if isinstance(text, str) and text else []
            if not words or not all(word.isascii() and word.isdigit() and len(word) <= 4 for word in words):
                raise InputError(place, repr(text)[:40], "codes of cycles, separated by single spaces")
            codes = np.array([int(word) for word in words])
            # A refusal needs a position beyond L.
            if (codes > 3 * depth + 2).any() or (codes == 3 * depth).any():
                raise InputError(place, int(codes.max()), f"codes of accepted lengths up to {depth}")
            owners.append(owner)
            pieces.append(codes)
        sizes = [len(piece) for piece in pieces]
        every = np.concatenate([*pieces, np.zeros(0, dtype=np.int64)])
        return cls(depth, prompts, np.array(owners, dtype=np.int64), np.cumsum([0, *sizes]), every)
