"""Likelihood of cycles in order under a token chain, with its gradient by prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gumiho_simulator.acceptance.chain.tokens import TokenChain
from gumiho_simulator.acceptance.observed.cycle_log import CycleLog
from gumiho_theory.types import FloatArray, IntArray

# Longer outputs are cut into pieces that begin anew: the steps of a pass stay few, a cut loses one link in 256.
_PIECE = 256
_BLOCK = 4096  # pieces worked on at once
_STEP = 1e-20  # of the complex-step derivative, which has no cancellation


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of outputs, longest first, to be passed through side by side.

    `symbols` [U] are the codes that occur, `codes` [pieces, steps] index them (U beyond a piece's end), `prompt`
    [pieces] is the prompt of each piece, and `prompts` how many there are.
    """

    symbols: IntArray
    codes: IntArray
    prompt: IntArray
    prompts: int

    @classmethod
    def of(cls, log: CycleLog) -> Pieces:
        """Cut a log into pieces."""
        symbols, index = np.unique(log.codes, return_inverse=True)
        bounds = [
            (owner, start, min(start + _PIECE, end))
            for owner, begin, end in zip(log.prompt_of, log.starts[:-1], log.starts[1:], strict=True)
            for start in range(begin, end, _PIECE)
        ]
        bounds.sort(key=lambda bound: bound[1] - bound[2])
        steps = bounds[0][2] - bounds[0][1] if bounds else 0
        codes = np.full((len(bounds), steps), len(symbols), dtype=np.int64)
        for row, (_, start, end) in enumerate(bounds):
            codes[row, : end - start] = index[start:end]
        return cls(symbols, codes, np.array([b[0] for b in bounds], dtype=np.int64), len(log.prompts))


def log_likelihood(chain: TokenChain, pieces: Pieces) -> tuple[FloatArray, FloatArray]:
    """Return each prompt's log-likelihood [G], nats, and its derivatives [G, P] in one vector of parameters.

    The forward-backward recursion (Baum et al., 1970), one cycle a step: a cycle's outcome is one matrix, the sum over
    all paths of difficulties through its tokens.
    """
    value, score = np.zeros(pieces.prompts), np.zeros((pieces.prompts, chain.theta.size))
    if not pieces.codes.size:
        return value, score
    bent = TokenChain(chain.states, chain.depths, chain.theta + 1j * _STEP * np.eye(chain.theta.size))
    matrices, slopes = chain.symbols(pieces.symbols), bent.symbols(pieces.symbols).imag / _STEP
    start, start_slopes = chain.start(), bent.start().imag / _STEP
    n = start.size
    for first in range(0, len(pieces.codes), _BLOCK):
        codes = pieces.codes[first : first + _BLOCK]
        owner = pieces.prompt[first : first + _BLOCK]
        logs, before, after, begin = _pass(matrices, start, codes)
        np.add.at(value, owner, logs)
        np.add.at(score, owner, begin @ start_slopes.T)
        for symbol in range(len(pieces.symbols)):
            rows, steps = np.nonzero(codes == symbol)
            # The likelihood is linear in each cycle's matrix: its derivative is the outer product of what comes
            # before and what comes after.
            outer = before[steps, rows, :, None] * after[steps, rows, None, :]
            np.add.at(score, owner[rows], outer.reshape(-1, n * n) @ slopes[:, symbol].reshape(-1, n * n).T)
    return value, score


def _pass(
    matrices: FloatArray, start: FloatArray, codes: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Run forwards and backwards: log-likelihoods [Q], before and after [T, Q, N], derivative of the start [Q, N].

    `before` is the state given the past, `after` the likelihood of the future relative to its own given the past.
    """
    pieces, steps = codes.shape
    lengths = (codes < len(matrices)).sum(axis=1)
    # Longest first: the pieces that last to step t are the first `alive[t]`.
    alive = (lengths[:, None] > np.arange(steps)).sum(axis=0)
    before = np.zeros((steps + 1, pieces, start.size))
    before[0] = start
    scale = np.ones((steps, pieces))
    for t, k in enumerate(alive):
        following = (before[t, :k, :, None] * matrices[codes[:k, t]]).sum(axis=1)
        scale[t, :k] = following.sum(axis=1)
        before[t + 1, :k] = following / scale[t, :k, None]
    after = np.zeros((steps, pieces, start.size))
    future = np.ones((pieces, start.size))
    for t in range(steps - 1, -1, -1):
        k = alive[t]
        after[t, :k] = future[:k] / scale[t, :k, None]
        future[:k] = (matrices[codes[:k, t]] * after[t, :k, None, :]).sum(axis=2)
    return np.log(scale).sum(axis=0), before[:-1], after, future


Objective = Callable[[FloatArray], tuple[float, FloatArray]]


def maximise(objective: Objective, begin: FloatArray, bounds: list[tuple[float, float]]) -> FloatArray:
    """Return the parameters that maximise an objective given with its gradient (L-BFGS-B)."""
    from scipy.optimize import minimize

    def negative(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(theta)
        return -value, -gradient

    found = minimize(
        negative,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 200, "maxcor": 20, "ftol": 1e-8, "gtol": 1e-6},
    )
    return np.asarray(found.x, dtype=np.float64)
