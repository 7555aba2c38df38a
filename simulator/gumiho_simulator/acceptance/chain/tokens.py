"""Drafting over a chain of token difficulties: where cycles begin, and what they accept there.

Every output token has a hidden difficulty; the next token keeps it or draws another. A drafted token is right with
a probability that depends on its difficulty, on its depth in the draft, and on whether the drafter would have got
the token before it right: the token behind a mistake is harder. A cycle accepts L tokens, the target adds one, and
the next cycle begins there. So cycles begin where drafts failed, more often so the longer they draft, and the
accepted length of any draft length follows exactly from the chain's transition matrices.

The state of a token is (difficulty, right or wrong): N = 2 S states, the right ones first. `theta` is a vector, or a
batch [..., P] of them: S difficulties' logits, F - 1 increments of the depth effect, the persistence, the shares of
the difficulties, and the log of the effect behind a mistake. Complex numbers pass through, for derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gumiho_simulator.acceptance.chain.links import logistic
from gumiho_theory.types import AnyArray, FloatArray, IntArray

# Deeper positions share the effect of this one; few logs draft deeper, fewer have cycles that get there.
FREE_DEPTHS = 12
# No outcome is impossible: a log may hold what extreme parameters, on the way to the best ones, would rule out.
_LEAST = 1e-9


@dataclass(frozen=True)
class TokenChain:
    """The chain of S = `states` difficulties and F = `depths` effects, those of the logged depth, at most 12.

    Its parameters `theta` [..., P] are as the module says.
    """

    states: int
    depths: int
    theta: AnyArray

    @property
    def persistences(self) -> int:
        """Number of persistence parameters: with two difficulties one serves both without loss."""
        return 1 if self.states == 2 else self.states

    def part(self, name: str) -> AnyArray:
        """Return one part of the parameters: difficulty, increments, persistence, shares or mistake."""
        s, f, r = self.states, self.depths - 1, self.persistences
        begin = {"difficulty": 0, "increments": s, "persistence": s + f, "shares": s + f + r}
        begin["mistake"] = begin["shares"] + s - 1
        end = {"difficulty": s, "increments": s + f, "persistence": s + f + r, "shares": s + f + r + s - 1}
        part: AnyArray = self.theta[..., begin[name] : end.get(name, begin["mistake"] + 1)]
        return part

    def difficulties(self) -> tuple[AnyArray, AnyArray]:
        """Return the transition matrix [..., S, S] of the difficulties and their stationary shares [..., S].

        A token keeps the difficulty of the one before with its persistence, or else draws one anew. Such a chain is
        reversible, without negative eigenvalues: not nearly periodic, as free matrices fitted to one length became.
        """
        keep = np.broadcast_to(logistic(self.part("persistence")), (*self.theta.shape[:-1], self.states))
        shares = self.part("shares")
        weights = np.exp(np.concatenate([np.zeros_like(shares[..., :1]), shares], axis=-1))
        drawn = weights / weights.sum(axis=-1, keepdims=True)
        matrix = keep[..., :, None] * np.eye(self.states) + (1 - keep)[..., :, None] * drawn[..., None, :]
        stationary = drawn / (1 - keep)
        return matrix, stationary / stationary.sum(axis=-1, keepdims=True)

    def rates(self, depth: int, shift: AnyArray | None = None) -> tuple[AnyArray, AnyArray]:
        """Return P(right | difficulty) at a depth behind a right token and behind a mistake, [..., S] each.

        Depths beyond the last effect share it; `shift` [...] is added to the logit.
        """
        effect = self.part("increments")[..., : depth - 1].sum(axis=-1)
        level = self.part("difficulty") + (effect if shift is None else effect + shift)[..., None]
        return _possible(level), _possible(level - np.exp(self.part("mistake")))

    def steps(self, depth: int, shifts: AnyArray | None = None) -> Iterator[tuple[AnyArray, AnyArray]]:
        """Yield for depths 1..`depth` the matrices [..., N, N] of a right and of a wrong token there.

        `shifts` [..., depth] are added to the logits by depth.
        """
        matrix, _ = self.difficulties()
        nothing = np.zeros_like(matrix)
        for i in range(depth):
            behind_right, behind_wrong = self.rates(i + 1, None if shifts is None else shifts[..., i])
            both = np.concatenate([matrix * behind_right[..., None, :], matrix * behind_wrong[..., None, :]], axis=-2)
            left = np.concatenate([matrix, matrix], axis=-2) - both
            blank = np.concatenate([nothing, nothing], axis=-2)
            yield np.concatenate([both, blank], axis=-1), np.concatenate([blank, left], axis=-1)

    def start(self) -> AnyArray:
        """Return the state's distribution [..., N] at an output's first token."""
        _, stationary = self.difficulties()
        right, _ = self.rates(1)
        return np.concatenate([stationary * right, stationary * (1 - right)], axis=-1)

    def symbols(self, codes: IntArray) -> AnyArray:
        """Return the matrices [..., U, N, N] of a cycle's outcomes, by the codes of `CycleLog`."""
        wanted = {int(code): index for index, code in enumerate(codes)}
        n = 2 * self.states
        made = np.zeros((*self.theta.shape[:-1], len(codes), n, n), dtype=self.theta.dtype)
        accepted: AnyArray = np.broadcast_to(np.eye(n, dtype=self.theta.dtype), (*self.theta.shape[:-1], n, n))
        for length, (right, wrong) in enumerate(self.steps(int(codes.max()) // 3 + 1)):
            for end, step in enumerate((wrong, right + wrong, np.eye(n))):
                if (index := wanted.get(3 * length + end)) is not None:
                    made[..., index, :, :] = accepted @ step
            accepted = accepted @ right
        return made

    def outcomes(self, length: int, shifts: AnyArray | None = None) -> Iterator[AnyArray]:
        """Yield for L = 0..`length` the matrices [..., N, N] of a cycle of chain:`length` that accepts L tokens."""
        n = 2 * self.states
        accepted: AnyArray = np.broadcast_to(np.eye(n), (*self.theta.shape[:-1], n, n))
        for i, (right, wrong) in enumerate(self.steps(length + 1, shifts)):
            # The token behind a draft accepted in full is the target's own; the drafter might have missed it.
            yield accepted @ (wrong if i < length else right + wrong)
            accepted = accepted @ right

    def cycle_starts(self, length: int, shifts: AnyArray | None = None) -> AnyArray:
        """Return the stationary distribution [..., N] of the state in which the cycles of chain:`length` begin."""
        n = 2 * self.states
        restart: AnyArray = np.zeros((*self.theta.shape[:-1], n, n))
        for outcome in self.outcomes(length, shifts):
            restart = restart + outcome
        balance = np.swapaxes(restart, -1, -2) - np.eye(n)
        balance[..., -1, :] = 1.0
        target = np.zeros((*balance.shape[:-1], 1))
        target[..., -1, 0] = 1.0
        starts: AnyArray = np.linalg.solve(balance, target)
        return starts[..., 0]

    def chain_rates(self, length: int, shifts: AnyArray | None = None, starts: AnyArray | None = None) -> FloatArray:
        """Return the conditional rates [..., length] of chain:`length`, pooled over its cycles.

        `shifts` [..., length + 1] are added to the logits by depth; the last is for the target's own token behind a
        full draft. Cycles begin in a state drawn from `starts` [..., N], by default the draft's own stationary
        distribution.
        """
        state = self.cycle_starts(length, shifts) if starts is None else starts
        rates = []
        for right, _ in self.steps(length, shifts):
            state = (state[..., :, None] * right).sum(axis=-2)
            rates.append(state.sum(axis=-1))
            state = state / rates[-1][..., None]
        return np.stack(rates, axis=-1)

    def simulate(self, length: int, tokens: int, generator: np.random.Generator) -> IntArray:
        """Draw one output of at least `tokens` tokens and return the accepted lengths of its cycles of chain:`length`.

        `theta` is one vector here. The target's own token counts: L accepted make L + 1 tokens.
        """
        matrix, stationary = self.difficulties()
        table = np.array([self.rates(i + 1) for i in range(length + 1)])  # [depth, behind right or mistake, S]
        edges = np.cumsum(matrix, axis=1)
        now = min(int(np.searchsorted(np.cumsum(stationary), generator.random())), self.states - 1)
        mistake = int(generator.random() >= table[0, 0, now])
        accepted, made = [], 0
        while made < tokens:
            for i in range(length + 1):
                now = min(int(np.searchsorted(edges[now], generator.random())), self.states - 1)
                right = generator.random() < table[i, mistake, now]
                mistake = int(not right)
                if i == length or not right:
                    accepted.append(i)
                    made += i + 1
                    break
        return np.array(accepted, dtype=np.int64)


def _possible(level: AnyArray) -> AnyArray:
    rates: AnyArray = _LEAST + (1 - 2 * _LEAST) * logistic(level)
    return rates
