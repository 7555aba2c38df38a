"""Prompts held out of a fit: which ones, and how far even a perfect model would be off on so few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gumiho_theory import EveryPositionLog, InputError, Trace
from gumiho_theory.types import FloatArray

_FEWEST = 5
_FLOOR_RESAMPLES = 4000


@dataclass(frozen=True)
class Split:
    """Prompt ids to fit and held out, each in the log's order."""

    fit: tuple[str, ...]
    held: tuple[str, ...]


def hold_out(log: Trace | EveryPositionLog, share: float, seed: int) -> Split:
    """Split the prompts of a log, at least two on either side; the same for every use of the same log, share and seed.

    `share` in (0, 1) is held out, of each task as nearly as whole prompts allow; InputError for another, or too few
    prompts.
    """
    if not 0 < share < 1:
        raise InputError("holdout", share, "a share between 0 and 1")
    held = split_prompts(log, share, np.random.default_rng(seed).spawn(1)[0])
    split = Split(
        tuple(prompt for prompt in log.prompts if prompt not in held),
        tuple(prompt for prompt in log.prompts if prompt in held),
    )
    if min(len(split.fit), len(split.held)) < 2:
        found = f"{len(split.fit)} to fit and {len(split.held)} held out"
        raise InputError("prompts", found, "at least two of each")
    return split


def split_prompts(trace: Trace | EveryPositionLog, holdout: float, generator: np.random.Generator) -> frozenset[str]:
    """Choose the share of prompts to hold out, stratified by task.

    Of each task it is the share rounded down or up, in all the share rounded to a whole prompt.
    """
    by_task: dict[str, list[str]] = {}
    for prompt, task in dict(zip(trace.prompt_id[::-1], trace.task[::-1], strict=True)).items():
        by_task.setdefault(task or "", []).append(prompt)
    # Lay the shuffled tasks end to end and hold out each prompt whose stretch crosses the next whole number
    # of held-out prompts: every task gets its share to within one, and the total is right too.
    order: list[str] = []
    for task in generator.permutation(sorted(by_task)):
        order.extend(generator.permutation(sorted(by_task[str(task)])).tolist())
    crossed = np.floor(np.arange(len(order) + 1) * holdout + 0.5)
    return frozenset(prompt for prompt, step in zip(order, np.diff(crossed), strict=True) if step > 0)


def sampling_errors(test: Trace, generator: np.random.Generator) -> FloatArray | None:
    """Draw 4,000 absolute relative errors of tau that a perfect model would have, by resampling held-out prompts.

    None with fewer than five prompts that hold a complete cycle, which would often be drawn as they are: no error at
    all would look likely.
    """
    counts = test.counts_by_prompt()
    complete = counts.complete_cycles.astype(np.float64)
    total = counts.total_accepted[complete > 0].astype(np.float64)
    complete = complete[complete > 0]
    n = complete.size
    if n < _FEWEST:
        return None
    weights = generator.multinomial(n, np.full(n, 1 / n), _FLOOR_RESAMPLES).astype(np.float64)
    resampled = 1 + (weights @ total) / (weights @ complete)
    whole = 1 + total.sum() / complete.sum()
    # Resampling n prompts understates the spread by (n - 1) / n.
    errors: FloatArray = np.abs(resampled / whole - 1) * np.sqrt(n / (n - 1))
    return errors
