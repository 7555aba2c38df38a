"""Cycles drawn in order from models whose cycles hang together: a hidden difficulty, or prompts that differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gumiho_simulator.acceptance.chain.links import logistic, logit
from gumiho_simulator.acceptance.chain.tokens import TokenChain
from gumiho_simulator.acceptance.hidden_markov import HiddenMarkovModel
from gumiho_simulator.acceptance.prompt_mixture import MixtureModel
from gumiho_theory import InputError, length_pmf
from gumiho_theory.types import FloatArray, IntArray

_DEEPEST = 512
_MOST_TOKENS = 2**31
_ROUNDS, _CLOSE, _LEAST = 200, 1e-12, 1e-6


@dataclass(frozen=True, eq=False)
class SimulatedOutputs:
    """Outputs drawn from a model, O of them, C cycles in all.

    `accepted` [C] holds the accepted length L of each cycle (no bonus), output by output; `starts` [O + 1] where each
    output's cycles begin, the last entry being C.
    """

    accepted: NDArray[np.int16]
    starts: IntArray

    def tau(self) -> float:
        """Mean acceptance length over all cycles: bonus included, micro."""
        return 1.0 + float(self.accepted.mean(dtype=np.float64))


def simulate_outputs(
    model: HiddenMarkovModel | MixtureModel, depth: int, outputs: int, tokens: int, generator: np.random.Generator
) -> SimulatedOutputs:
    """Draw outputs of chain:`depth` from a fitted model; independent cycles are drawn faster by `simulate_lengths`.

    Hidden Markov cycles follow from one another; their pooled rates are those of ``model.conditional(depth)``. Prompts
    of a mixture each have a difficulty of their own. Each output has `tokens` tokens at least; its last cycle is not
    cut. InputError for numbers out of range.
    """
    # numba starts slowly: only who simulates waits for it.
    from gumiho_simulator.acceptance.simulating.kernel import draw_apart, draw_in_order

    if not 1 <= depth <= _DEEPEST:
        raise InputError("draft length", depth, f"1 to {_DEEPEST}")
    if outputs < 1 or tokens < 1 or outputs * tokens > _MOST_TOKENS:
        raise InputError("outputs x tokens", f"{outputs} x {tokens}", f"at least 1 of each, {_MOST_TOKENS} in all")
    if isinstance(model, MixtureModel):
        shifts = model.spread * generator.standard_normal(outputs)
        deeper = np.full(max(0, depth - model.levels.size), model.levels[-1])
        rates = logistic(np.append(model.levels[:depth], deeper) + shifts[:, None])
        return SimulatedOutputs(*draw_apart(np.cumsum(length_pmf(rates), axis=1), tokens, generator))
    start, table = cycle_table(model.chain, matched_shifts(model, depth))
    chances, others = alias_tables(table.reshape(len(start), -1))
    return SimulatedOutputs(*draw_in_order(np.cumsum(start), chances, others, outputs, tokens, generator))


def matched_shifts(model: HiddenMarkovModel, depth: int) -> FloatArray:
    """Return what to add to the chain's logits by depth [depth + 1] so that its pooled rates are the model's forecast.

    The last is for the target's own token behind a full draft. A forecast rate of 0 or 1, which no finite shift gives,
    is taken as one in a million.
    """
    chain = model.chain
    wanted = logit(np.clip(model.conditional(depth), _LEAST, 1 - _LEAST))
    shifts = np.array(model.trend(chain, depth))
    for _ in range(_ROUNDS):
        misfit = wanted - logit(np.clip(chain.chain_rates(depth, shifts), _LEAST / 10, 1 - _LEAST / 10))
        shifts[:depth] += misfit
        if np.abs(misfit).max() < _CLOSE:
            break
    return shifts


def cycle_table(chain: TokenChain, shifts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distribution of a cycle given the state of the token before it: exact, by the chain's matrices.

    `start` [N] is the state's distribution at an output's first token. `table` [N, K + 1, N] is P(L accepted, and the
    state of the cycle's last token | the state before); it sums to 1 over the last two axes. `shifts` [K + 1] are added
    to the logits by depth.
    """
    outcomes = list(chain.outcomes(shifts.size - 1, shifts))
    return np.asarray(chain.start(), dtype=np.float64), np.stack(outcomes, axis=1)


def alias_tables(pmf: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return Walker's alias tables (1977) of distributions [S, M]: a draw takes one number whatever their size.

    Outcome m, drawn evenly, is kept with probability `chances` [S, M], otherwise `others` [S, M] is taken.
    """
    rows, size = pmf.shape
    chances, others = np.ones((rows, size)), np.tile(np.arange(size), (rows, 1))
    for row in range(rows):
        weight = np.clip(pmf[row], 0, None)
        weight = weight / weight.sum() * size
        small, large = [m for m in range(size) if weight[m] < 1], [m for m in range(size) if weight[m] >= 1]
        while small and large:
            low, high = small.pop(), large[-1]
            chances[row, low], others[row, low] = weight[low], high
            weight[high] -= 1 - weight[low]
            if weight[high] < 1:
                small.append(large.pop())
    return chances, others
