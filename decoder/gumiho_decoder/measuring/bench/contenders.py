"""One prompt decoded by many contenders, in turn with plain decoding and transformers' `generate`.

A machine's speed drifts over minutes: what is to be compared is run within seconds of each other.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Generation
from gumiho_decoder.draft import Drafter
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import VERDICTS, compare
from gumiho_decoder.measuring.prompts import Prompt
from gumiho_decoder.measuring.runs import encode, library, place_seed
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, InputError, Trace

WARM_UP_TOKENS = 16


@dataclass(frozen=True, eq=False)
class Contender:
    """A drafter, and with which structure, calibration and temperature it decodes."""

    drafter: Drafter
    generation: GenerationConfig

    @property
    def temperature(self) -> float:
        """Temperature of the outputs, and of the baselines beside them."""
        return self.generation.temperature


@dataclass(frozen=True)
class Turn:
    """One turn of one prompt: what a contender wrote, beside the plain loop and `generate`.

    Attributes
    ----------
    tokens, plain_tokens, library_tokens : int
        New tokens.
    seconds, plain_seconds, library_seconds : float
        Wall time, prefill included; median of the repeats.
    verdict : str or None
        Of the comparison with the plain loop's output, the worst of the repeats; None at temperature above 0.
    """

    prompt_id: str
    turn: int
    tokens: int
    seconds: float
    plain_tokens: int
    plain_seconds: float
    library_tokens: int
    library_seconds: float
    verdict: str | None


@dataclass(frozen=True)
class Job:
    """One output to make: by a contender, or by a baseline at a temperature.

    Attributes
    ----------
    key : Contender, or tuple of name and temperature
    text : list of int
        Tokens of the conversation so far.
    asked : GenerationConfig
    """

    key: Any
    text: list[int]
    asked: GenerationConfig

    def run(self, target: Target, recorder: Recorder, prompt: Prompt, turn: int) -> Generation:
        """Make it; a contender's cycles go to the recorder."""
        if isinstance(self.key, Contender):
            record = recorder.prompt(prompt.prompt_id, prompt.task, turn)
            return generate(target, self.key.drafter, self.text, self.asked, record)
        return (plain if self.key[0] == "plain" else library)(target, self.text, self.asked)


def measure_prompt(
    target: Target, prompt: Prompt, index: int, contenders: Sequence[Contender], repeats: int
) -> dict[Contender, tuple[Trace, list[Turn]]]:
    """Decode one prompt with every contender and both baselines, one after the other.

    Later turns go on from the plain loop's replies, so that all contenders of a temperature read the same text.

    `index`: Of the prompt in its file. Outputs are drawn from the seed and this place, as in `run`; the order is turned
    by one from each prompt and repeat to the next. `repeats`: Times that each output is made. The cycles of the first
    are recorded. Returns dict: Of each contender the trace of its cycles (without provenance), and its turns.
    """
    recorders = {one: Recorder() for one in contenders}
    turns: dict[Contender, list[Turn]] = {one: [] for one in contenders}
    replies: dict[float, list[str]] = {one.temperature: [] for one in contenders}
    for turn in range(len(prompt.turns)):
        try:
            jobs = _jobs(target, prompt, index, replies, contenders)
        except InputError as error:
            print(f"note: {error}: the conversation ends here", file=sys.stderr)
            break
        made: dict[Any, list[Generation]] = {job.key: [] for job in jobs}
        for repeat in range(repeats):
            for job in rotated(jobs, index * repeats + repeat):
                # Recorded each time, so that all repeats do the same work.
                recorder = recorders[job.key] if job.key in recorders and not repeat else Recorder()
                made[job.key].append(job.run(target, recorder, prompt, turn))
        texts = {job.key: job.text for job in jobs}
        for one in contenders:
            beside = made["plain", one.temperature], made["generate", one.temperature]
            verdict = None if one.temperature else _verdict(target, texts[one], beside[0][0], made[one])
            counts = [value for outputs in (made[one], *beside) for value in _size(outputs)]
            turns[one].append(Turn(prompt.prompt_id, turn, *counts, verdict))
        for temperature, said in replies.items():
            said.append(target.decode(made["plain", temperature][0].token_ids))
    return {one: (recorders[one].trace({}), turns[one]) for one in contenders}


def warm_up(target: Target, prompt: Prompt, contenders: Sequence[Contender]) -> None:
    """Make a few tokens of each output twice, so that no first call is timed."""
    for job in _jobs(target, prompt, 0, {one.temperature: [] for one in contenders}, contenders) * 2:
        few = replace(job.asked, max_new_tokens=min(WARM_UP_TOKENS, job.asked.max_new_tokens))
        replace(job, asked=few).run(target, Recorder(), prompt, 0)


def _jobs(
    target: Target, prompt: Prompt, index: int, replies: dict[float, list[str]], contenders: Sequence[Contender]
) -> list[Job]:
    """Return what is to be made of the next turn: baselines first, each temperature's own, then the contenders.

    Raises InputError: The text does not fit the target or one of the drafters.
    """
    turn = len(next(iter(replies.values())))
    seed = place_seed(contenders[0].generation.seed, index, turn)
    texts = {temperature: encode(target, prompt, said) for temperature, said in replies.items()}
    for one in contenders:
        encode(target, prompt, replies[one.temperature], one.drafter)
    undrafted = {"structure": ChainStructure(1), "calibration": None, "seed": seed}
    plainly = {one.temperature: replace(one.generation, **undrafted) for one in contenders}
    beside = [Job((name, t), texts[t], asked) for name in ("plain", "generate") for t, asked in plainly.items()]
    return [*beside, *(Job(c, texts[c.temperature], replace(c.generation, seed=seed)) for c in contenders)]


def rotated(jobs: list[Job], by: int) -> list[Job]:
    """Return the jobs in a cycle's order that begins `by` places later: in as many rounds, each is first once."""
    start = by % len(jobs)
    return jobs[start:] + jobs[:start]


def _verdict(target: Target, text: list[int], expected: Generation, made: Sequence[Generation]) -> str:
    found = (compare(target, text, expected.token_ids, one.token_ids).verdict for one in made)
    return max(found, key=VERDICTS.index)


def _size(made: Sequence[Generation]) -> tuple[int, float]:
    return len(made[0].token_ids), median(one.seconds for one in made)
