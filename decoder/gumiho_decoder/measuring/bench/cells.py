"""One prompt decoded by many pairs of drafter and structure, in turn with plain decoding and transformers' `generate`.

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
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.prompts import Prompt
from gumiho_decoder.measuring.runs import encode, library, place_seed
from gumiho_decoder.target import Target
from gumiho_theory import ChainStructure, InputError, Trace

VERDICTS = ("equal", "tie", "different")  # from the best to the worst
WARM_UP_TOKENS = 16


@dataclass(frozen=True, eq=False)
class Cell:
    """One combination that is measured: a drafter, and with which structure, calibration and temperature it decodes."""

    drafter: Drafter
    generation: GenerationConfig

    @property
    def temperature(self) -> float:
        """Temperature of the outputs, and of the baselines beside them."""
        return self.generation.temperature


@dataclass(frozen=True)
class Turn:
    """One turn of one prompt: what a cell wrote, beside the plain loop and `generate`.

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
    """One output to make: by a cell, or by a baseline at a temperature.

    Attributes
    ----------
    key : Cell, or tuple of name and temperature
    text : list of int
        Tokens of the conversation so far.
    asked : GenerationConfig
    """

    key: Any
    text: list[int]
    asked: GenerationConfig

    def run(self, target: Target, recorder: Recorder, prompt: Prompt, turn: int) -> Generation:
        """Make it; a cell's cycles go to the recorder."""
        if isinstance(self.key, Cell):
            record = recorder.prompt(prompt.prompt_id, prompt.task, turn)
            return generate(target, self.key.drafter, self.text, self.asked, record)
        return (plain if self.key[0] == "plain" else library)(target, self.text, self.asked)


def measure(
    target: Target, prompt: Prompt, index: int, cells: Sequence[Cell], repeats: int
) -> dict[Cell, tuple[Trace, list[Turn]]]:
    """Decode one prompt with every cell and both baselines, one after the other.

    Later turns go on from the plain loop's replies, so that all cells of a temperature read the same text.

    Parameters
    ----------
    index : int
        Of the prompt in its file. Outputs are drawn from the seed and this place, as in `run`; the order is turned by
        one from each prompt and repeat to the next.
    repeats : int
        Times that each output is made. The cycles of the first are recorded.

    Returns
    -------
    dict
        Of each cell the trace of its cycles (without provenance), and its turns.
    """
    recorders = {cell: Recorder() for cell in cells}
    turns: dict[Cell, list[Turn]] = {cell: [] for cell in cells}
    replies: dict[float, list[str]] = {cell.temperature: [] for cell in cells}
    for turn in range(len(prompt.turns)):
        try:
            jobs = _jobs(target, prompt, index, replies, cells)
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
        for cell in cells:
            beside = made["plain", cell.temperature], made["generate", cell.temperature]
            verdict = _verdict(target, texts[cell], beside[0][0], made[cell]) if not cell.temperature else None
            counts = [value for one in (made[cell], *beside) for value in _size(one)]
            turns[cell].append(Turn(prompt.prompt_id, turn, *counts, verdict))
        for temperature, said in replies.items():
            said.append(target.decode(made["plain", temperature][0].token_ids))
    return {cell: (recorders[cell].trace({}), turns[cell]) for cell in cells}


def warm_up(target: Target, prompt: Prompt, cells: Sequence[Cell]) -> None:
    """Make a few tokens of each output twice, so that no first call is timed."""
    for job in _jobs(target, prompt, 0, {cell.temperature: [] for cell in cells}, cells) * 2:
        few = replace(job.asked, max_new_tokens=min(WARM_UP_TOKENS, job.asked.max_new_tokens))
        replace(job, asked=few).run(target, Recorder(), prompt, 0)


def _jobs(
    target: Target, prompt: Prompt, index: int, replies: dict[float, list[str]], cells: Sequence[Cell]
) -> list[Job]:
    """Return what is to be made of the next turn: baselines first, each temperature's own, then the cells.

    Raises
    ------
    InputError
        The text does not fit the target or one of the drafters.
    """
    turn = len(next(iter(replies.values())))
    seed = place_seed(cells[0].generation.seed, index, turn)
    texts = {temperature: encode(target, prompt, said) for temperature, said in replies.items()}
    for cell in cells:
        encode(target, prompt, replies[cell.temperature], cell.drafter)
    plainly = {
        cell.temperature: replace(cell.generation, structure=ChainStructure(1), calibration=None, seed=seed)
        for cell in cells
    }
    beside = [Job((name, t), texts[t], asked) for name in ("plain", "generate") for t, asked in plainly.items()]
    return [*beside, *(Job(c, texts[c.temperature], replace(c.generation, seed=seed)) for c in cells)]


def rotated(jobs: list[Job], by: int) -> list[Job]:
    """Return the jobs in a cycle's order that begins `by` places later: in as many rounds, each is first once."""
    start = by % len(jobs)
    return jobs[start:] + jobs[:start]


def _verdict(target: Target, text: list[int], expected: Generation, made: Sequence[Generation]) -> str:
    found = (compare(target, text, expected.token_ids, one.token_ids).verdict for one in made)
    return max(found, key=VERDICTS.index)


def _size(made: Sequence[Generation]) -> tuple[int, float]:
    return len(made[0].token_ids), median(one.seconds for one in made)
