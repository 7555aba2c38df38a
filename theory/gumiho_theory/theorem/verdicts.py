"""What the early-token theorem has to say about a real log: a verdict with the uncertainty of its rates.

The rates are the pooled conditional rates of the log, their uncertainty that of whole groups (prompts) resampled with
replacement. That the hypothesis fails for pooled rates does not mean that it fails in reality: easy contexts survive
longer, so that pooled rates rise even where the rates fall in every context (`gumiho_theory.extensions.dependence`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.files import PathLike
from gumiho_theory.logs.counts import AcceptanceCounts
from gumiho_theory.logs.trace import Trace
from gumiho_theory.rates import gradient_terms, sensitivity
from gumiho_theory.theorem.best_move import BestMove, best_move
from gumiho_theory.theorem.check import Hypothesis, hypothesis_form
from gumiho_theory.types import BoolArray, FloatArray, IntArray

_FEW_CYCLES, _FEW_GROUPS = 30, 10
_CELLS = 4_000_000  # resampled counts held in memory at once


@dataclass(frozen=True)
class EarlyVerdict:
    """The hypothesis for one number of early positions.

    Attributes
    ----------
    early : int
        d, the number of early positions.
    hypothesis : {"descending", "dominated"} or None
        Form that the estimated rates satisfy.
    violations : tuple of str
        What breaks it, by position.
    probability : float or None
        Share of resampled logs whose rates satisfy either form; None where nothing could be resampled.
    """

    early: int
    hypothesis: Hypothesis | None
    violations: tuple[str, ...]
    probability: float | None


@dataclass(frozen=True)
class PairVerdict:
    """Two neighbouring positions.

    Attributes
    ----------
    position : int
        k; the other is k + 1.
    rate, next_rate : float
        Pooled conditional rates p_k and p_{k+1}.
    worth, next_worth : float
        Their worth, dE[L] / dp: that of the earlier is the larger iff (p_k - p_{k+1}) W_{k+1} <= 1.
    falls : bool
        Whether p_k >= p_{k+1}.
    falls_probability : float or None
        Share of resampled logs in which it is so.
    earlier_worth_more : bool
        Whether worth >= next_worth: what the theorem is after, hypothesis or not.
    earlier_worth_more_probability : float or None
        Share of resampled logs in which it is so.
    """

    position: int
    rate: float
    next_rate: float
    worth: float
    next_worth: float
    falls: bool
    falls_probability: float | None
    earlier_worth_more: bool
    earlier_worth_more_probability: float | None


@dataclass(frozen=True)
class Verdict:
    """Whether the theorem's hypothesis holds for logged rates, how sure that is, and what would gain most.

    Attributes
    ----------
    rates : tuple of float [D]
        Pooled conditional rates, up to the last position that a cycle reached.
    cycles_at_risk : tuple of int [D]
        Cycles that tried each position.
    groups : int
        Groups (prompts, engines) that were resampled: those with a cycle at risk.
    hypothesis : {"descending"} or None
        The paper's form, which does not depend on the number of early positions.
    probability : float or None
        Share of resampled logs whose rates descend; None with fewer than 2 groups.
    by_early : tuple of EarlyVerdict [D - 1]
        Either form, by number of early positions.
    pairs : tuple of PairVerdict [D - 1]
        Neighbouring positions: where the rates rise, and where earlier is worth more nonetheless.
    best_move : BestMove or None
        None where no exchange gains.
    resamples : int
        Resampled logs; 0 where there is nothing to resample.
    seed : int
    notes : tuple of str
        Why the probabilities say less than they seem to: few cycles, few groups, resampled logs that are all alike.
    convention : str
        How the rates were taken.
    """

    rates: tuple[float, ...]
    cycles_at_risk: tuple[int, ...]
    groups: int
    hypothesis: Hypothesis | None
    probability: float | None
    by_early: tuple[EarlyVerdict, ...]
    pairs: tuple[PairVerdict, ...]
    best_move: BestMove | None
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()
    convention: str = "conditional rates, pooled over cycles (micro); E[L] without the bonus token"

    @property
    def violations(self) -> tuple[str, ...]:
        """Every rise from one position to the next."""
        return tuple(
            f"rates rise from {p.position} ({p.rate:.6g}) to {p.position + 1} ({p.next_rate:.6g})"
            for p in self.pairs
            if not p.falls
        )

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON values, its two tables as lists of flat objects."""
        return {
            "hypothesis": self.hypothesis,
            "violations": list(self.violations),
            "probability": self.probability,
            "rates": list(self.rates),
            "cycles_at_risk": list(self.cycles_at_risk),
            "groups": self.groups,
            "notes": list(self.notes),
            "resamples": self.resamples,
            "seed": self.seed,
            "convention": self.convention,
            "best_move": None if self.best_move is None else self.best_move.to_json(),
            "by_early": [{**vars(one), "violations": list(one.violations)} for one in self.by_early],
            "pairs": [dict(vars(one)) for one in self.pairs],
        }


def verdict(log: Trace | AcceptanceCounts | PathLike, seed: int = 0, resamples: int = 2000) -> Verdict:
    """Judge the theorem's hypothesis by the rates of a log.

    Parameters
    ----------
    log : Trace, AcceptanceCounts or path-like
        Cycles, or counts by group with positions, or a file of either (counts end in .json); a trace is summed by
        prompt.
    seed : int
        Of the generator that resamples groups.
    resamples : int
        Number of resampled logs, at least 1.

    Returns
    -------
    Verdict
        Probabilities are shares of resampled logs. A resampled log that never reaches a position says nothing of it
        and is judged by the positions that it reaches. All probabilities are None with fewer than 2 groups: cycles of
        one group are alike, and to resample them as if they were not would claim more than is known.

    Raises
    ------
    InputError
        When the file cannot be used; when the log has no counts by position, no cycle that tried the first one, or only
        one position; for a negative seed or no resamples.
    """
    if seed < 0:
        raise InputError("seed", seed, "at least 0")
    if resamples < 1:
        raise InputError("resamples", resamples, "at least 1")
    if isinstance(log, str | os.PathLike):
        log = AcceptanceCounts.read(log) if os.fspath(log).lower().endswith(".json") else Trace.read(log)
    counts = log.counts_by_prompt() if isinstance(log, Trace) else log
    if counts.at_risk is None or counts.accepted is None:
        raise InputError("log", "no counts by position", "at_risk and accepted by position")
    informed = counts.at_risk[:, :1].sum(axis=1) > 0
    risk, hits = counts.at_risk[informed], counts.accepted[informed]
    depth = int((risk.sum(axis=0) > 0).sum())
    if depth < 2:
        raise InputError("log", f"{depth} positions with a cycle at risk", "at least 2: an early one and a later one")
    risk, hits = risk[:, :depth], hits[:, :depth]
    rates = hits.sum(axis=0) / risk.sum(axis=0)
    groups = len(risk)
    drawn = _resampled(risk, hits, np.random.default_rng(seed), resamples) if groups > 1 else np.zeros((0, depth))

    def share(holds: Any) -> float | None:
        return float(holds.mean()) if len(holds) else None

    falls = _falls(drawn)
    gradient = sensitivity(rates)
    # A position never reached counts as 0, which ends the sums.
    drawn_gradient = np.multiply(*gradient_terms(np.nan_to_num(drawn)))
    more = _at_least(drawn_gradient[:, :-1], drawn_gradient[:, 1:], drawn)
    by_early = []
    for early in range(1, depth):
        form, violations = hypothesis_form(rates, early)
        by_early.append(EarlyVerdict(early, form, violations, share(falls.all(axis=1) | _dominated(drawn, early))))
    pairs = tuple(
        PairVerdict(
            position=k + 1,
            rate=float(rates[k]),
            next_rate=float(rates[k + 1]),
            worth=float(gradient[k]),
            next_worth=float(gradient[k + 1]),
            falls=bool(rates[k] >= rates[k + 1]),
            falls_probability=share(falls[:, k]),
            earlier_worth_more=bool(gradient[k] >= gradient[k + 1]),
            earlier_worth_more_probability=share(more[:, k]),
        )
        for k in range(depth - 1)
    )
    return Verdict(
        rates=tuple(map(float, rates)),
        cycles_at_risk=tuple(map(int, risk.sum(axis=0))),
        groups=groups,
        hypothesis="descending" if all(pair.falls for pair in pairs) else None,
        probability=share(falls.all(axis=1)),
        by_early=tuple(by_early),
        pairs=pairs,
        best_move=best_move(rates, drawn),
        resamples=len(drawn),
        seed=seed,
        notes=_notes(risk, counts.clusters, drawn),
    )


def _notes(risk: IntArray, clusters: str, drawn: FloatArray) -> tuple[str, ...]:
    """Say what makes shares of resampled logs poor probabilities."""
    cycles, notes = risk.sum(axis=0), []
    if cycles.min() < _FEW_CYCLES:
        thin = int(np.argmax(cycles < _FEW_CYCLES))
        found = f"from position {thin + 1} on it rests on {cycles[thin]} cycles or fewer"
        if not thin:
            found = f"all of this rests on {cycles[0]} cycles"
        notes.append(f"{found}: a probability of 0 or 1 is no certainty")
    if len(risk) < _FEW_GROUPS:
        shares = "no probabilities" if len(risk) < 2 else "shares of resampled logs are poor probabilities"
        notes.append(f"only {len(risk)} {clusters} with a cycle: {shares}")
    if len(drawn) and bool((drawn == drawn[0]).all()):
        notes.append("all resampled logs are alike: their shares say nothing of uncertainty")
    return tuple(notes)


def _resampled(risk: Any, hits: Any, generator: np.random.Generator, resamples: int) -> FloatArray:
    """Pooled conditional rates [B, D] of logs whose groups are drawn with replacement; nan where none is at risk."""
    groups, depth = risk.shape
    rates = np.full((resamples, depth), np.nan)
    batch = max(1, _CELLS // groups)
    for first in range(0, resamples, batch):
        rows = min(batch, resamples - first)
        # How often each group was drawn is all that the sums need.
        times = generator.multinomial(groups, np.full(groups, 1 / groups), size=rows)
        seen, won = times @ risk, times @ hits
        np.divide(won, seen, out=rates[first : first + rows], where=seen > 0)
    return rates


def _at_least(left: FloatArray, right: FloatArray, rates: FloatArray) -> BoolArray:
    """Left >= right between neighbours [B, D - 1]; true where the later position was never reached."""
    holds: BoolArray = (left >= right) | np.isnan(rates[:, 1:])
    return holds


def _falls(rates: FloatArray) -> BoolArray:
    return _at_least(rates[:, :-1], rates[:, 1:], rates)


def _dominated(rates: FloatArray, early: int) -> BoolArray:
    lowest = np.min(rates[:, :early], axis=1, initial=1.0, where=~np.isnan(rates[:, :early]))
    highest = np.max(rates[:, early:], axis=1, initial=0.0, where=~np.isnan(rates[:, early:]))
    holds: BoolArray = (lowest >= highest) & _falls(rates[:, early:]).all(axis=1)
    return holds
