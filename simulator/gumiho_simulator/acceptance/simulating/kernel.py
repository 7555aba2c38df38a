"""Cycles drawn one after another, compiled; their slow twins are plain loops over the same random numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.compiled import compiled
from gumiho_theory.types import FloatArray, IntArray


@compiled
def draw_in_order(
    start: FloatArray, chances: FloatArray, others: IntArray, outputs: int, tokens: int, generator: np.random.Generator
) -> tuple[NDArray[np.int16], IntArray]:
    """Draw outputs whose cycles follow from one another: one number an output, one a cycle.

    `start` [N] is the cumulative distribution of the first token's state; `chances` and `others` [N, M] are alias
    tables of a cycle's outcome by the state before it: outcome L N + state behind it. Returned as `SimulatedOutputs`
    holds them.
    """
    states, size = chances.shape
    accepted = np.empty(outputs * tokens, np.int16)
    starts = np.zeros(outputs + 1, np.int64)
    made = 0
    for output in range(outputs):
        luck = generator.random()
        state = 0
        while state < states - 1 and luck >= start[state]:
            state += 1
        written = 0
        while written < tokens:
            luck = generator.random() * size
            outcome = int(luck)
            if luck - outcome >= chances[state, outcome]:
                outcome = others[state, outcome]
            length = outcome // states
            state = outcome - length * states
            accepted[made] = length
            made += 1
            written += length + 1
        starts[output + 1] = made
    return accepted[:made].copy(), starts


@compiled
def draw_apart(cdfs: FloatArray, tokens: int, generator: np.random.Generator) -> tuple[NDArray[np.int16], IntArray]:
    """Draw outputs whose cycles are independent given the output, by cumulative distributions [O, K + 1] of L.

    One number a cycle; returned as `SimulatedOutputs` holds them.
    """
    outputs, size = cdfs.shape
    accepted = np.empty(outputs * tokens, np.int16)
    starts = np.zeros(outputs + 1, np.int64)
    made = 0
    for output in range(outputs):
        written = 0
        while written < tokens:
            luck = generator.random()
            length = 0
            while length < size - 1 and luck >= cdfs[output, length]:
                length += 1
            accepted[made] = length
            made += 1
            written += length + 1
        starts[output + 1] = made
    return accepted[:made].copy(), starts
