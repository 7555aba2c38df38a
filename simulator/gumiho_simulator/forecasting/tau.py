"""Forecast tau and the accepted-length distribution of a structure, with an honest interval or a refusal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from gumiho_simulator.acceptance import AcceptanceModel, HiddenMarkovModel, RankTableModel
from gumiho_simulator.forecasting.fitting import FitResult
from gumiho_simulator.forecasting.intervals import effective_prompts, small_sample_factor, stretch
from gumiho_simulator.forecasting.results import Row, Rows
from gumiho_theory import ChainStructure, InputError, StaticTree, Structure, conditional_to_survival, length_pmf, tau
from gumiho_theory.types import FloatArray

CONVENTION = "bonus included, micro"

# Rounds restart after a rejection, where the text is hard, and shorter drafts restart less often there:
# rates measured at one length and cut to a shorter one gave tau 2.0 to 6.7 % low in replays of public logs
# (10 positions cut to 3).
ROUND_START_BIAS = 0.07
_BATCH_CELLS = 4_000_000


@dataclass(frozen=True)
class Forecast(Row):
    """One structure's forecast.

    Parameters
    ----------
    structure, model
        Canonical text of the structure; name of the acceptance model, or "points" for a forecast from published points.
    tau, lo, hi
        Forecast tau (see `CONVENTION`; cycles that end by a stop left out) and 95 % limits for the tau that
        `new_prompts` further prompts of the same mix will show; None when refused, the limits also when the fit has
        fewer than two prompts with a complete cycle.
    supported, note
        Whether every position asked for was observed, in this structure; and the reason of a refusal, or what the
        reader has to know (may be empty).
    pmf, survival
        P(L = 0..D) and P(L >= 1..D); None when refused.
    n_prompts, new_prompts
        Prompts of the fit, and of the run forecast; None when the forecast does not rest on prompts.
    seed
        Of the resampling.
    """

    structure: str
    model: str
    tau: float | None
    lo: float | None
    hi: float | None
    supported: bool
    note: str
    pmf: tuple[float, ...] | None = None
    survival: tuple[float, ...] | None = None
    convention: str = CONVENTION
    n_prompts: int | None = None
    new_prompts: int | None = None
    seed: int = 0


class Forecasts(Rows[Forecast]):
    """Forecasts of several structures: a tuple."""

    key: ClassVar[str] = "forecasts"


def forecast(
    fitted: FitResult,
    structures: Sequence[Structure | str],
    new_prompts: int | None = None,
    seed: int = 0,
    n_resamples: int = 4000,
) -> Forecasts:
    """Forecast tau (bonus included, micro) and the distribution of L for draft structures.

    The interval is one for a future measurement. It combines the uncertainty of the fit (its prompts resampled and the
    model refitted) with the sampling noise of a new set of prompts (resampled from the fit's prompts, each with its own
    cycles, so that the varying number of cycles a prompt counts): the percentiles of tau(new) - tau(refit), stretched
    by sqrt(n / (n - 1)) t / z with n the effective number of prompts, because resampling few clusters is known to be
    too narrow. A model that carries rates to other draft lengths (hmm, rank) adds what such forecasts were found to be
    wrong by.

    Models that count positions apart (hazard, rank) refuse positions never observed; the others go on, with `supported`
    False. A chain shorter than the logged one is supported; unless the model takes into account where cycles of that
    length begin, its upper limit is raised by 7 % of tau and the note says why. Static trees are forecast by a rank
    fit. Other structures are forecast only when they are the logged structure itself; rates of one structure do not
    carry over to another.

    Parameters
    ----------
    fitted
        A fit with counts by prompt.
    structures
        Structures or their text, such as "chain:5"; forecasts come in the same order.
    new_prompts
        Number of prompts of the run to forecast; by default as many as the fit has.
    seed, n_resamples
        Seed and number of the resamples.

    Raises
    ------
    InputError
        Ill-formed structure text, or `new_prompts` below 1.
    """
    if new_prompts is not None and new_prompts < 1:
        raise InputError("new prompts", new_prompts, "at least 1")
    logged = None if fitted.structure is None else canonical(fitted.structure)
    # Every structure sees the same resamples, so that differences between structures are not blurred.
    draws = _Resamples(fitted.model, new_prompts or fitted.n_prompts, seed, n_resamples)
    return Forecasts(_forecast_one(fitted, canonical(str(item)), logged, draws) for item in structures)


def canonical(text: str) -> str:
    """Return the canonical text of a structure, equal for equal structures; InputError for ill-formed text.

    A static tree's file is not read: its name stands for it, and the file that a log names need not be at hand.
    """
    return text if text.startswith("static:") else str(Structure.parse(text))


@dataclass(frozen=True)
class _Plan:
    """How a structure's rates come about: rates by depth for reweighted prompts, or a refusal."""

    depth: int | None
    note: str
    rates: Callable[[FloatArray], FloatArray] | None = None
    shown: Callable[[FloatArray], FloatArray] | None = None  # what a new set of prompts would measure
    doubt: Callable[[int, np.random.Generator], FloatArray] | None = None  # factors by which the model may be wrong


def _forecast_one(fitted: FitResult, structure: str, logged: str | None, draws: _Resamples) -> Forecast:
    model = fitted.model
    plan = _plan(model, structure, logged)
    values: dict[str, Any] = dict.fromkeys(("tau", "lo", "hi", "pmf", "survival"))
    note, supported = plan.note, plan.depth is not None and plan.depth <= model.support
    if plan.depth is not None and plan.rates is not None:
        rates = plan.rates(model.once)[0]
        point = float(tau(rates))
        limits, remark = draws.interval(plan, rates, point)
        note = "; ".join(part for part in (note, remark) if part)
        values = {
            "tau": point,
            "lo": None if limits is None else limits[0],
            "hi": None if limits is None else limits[1],
            "pmf": tuple(length_pmf(rates).tolist()),
            "survival": tuple(conditional_to_survival(rates).tolist()),
        }
    return Forecast(
        structure=structure,
        model=model.name,
        supported=supported,
        note=note,
        n_prompts=fitted.n_prompts,
        new_prompts=draws.new_prompts,
        seed=draws.seed,
        **values,
    )


def _plan(model: AcceptanceModel, structure: str, logged: str | None) -> _Plan:
    """Return how to forecast a structure, or a refusal with its reason."""
    if structure == logged and not structure.startswith("chain:"):
        depth = model.measured.support
        # Ranks behind first candidates say less of the logged tree than what it accepted.
        own = model.measured if isinstance(model, RankTableModel) else model
        note = "rates of this same structure, as deep as the log goes"
        return _Plan(depth, note, partial(own.refitted, depth=depth), partial(model.measured.refitted, depth=depth))
    if isinstance(model, RankTableModel):
        return _by_ranks(model, structure)
    if not structure.startswith("chain:"):
        return _Plan(None, "refused: rates by position forecast only chains, or the very structure that was logged")
    if logged is not None and not logged.startswith("chain:"):
        return _Plan(None, f"refused: the rates were logged with {logged}, a chain would have others")
    depth, note = int(structure.removeprefix("chain:")), ""
    if depth > model.support:
        note = f"position {model.support} is the deepest observed"
        if not model.beyond:
            return _Plan(None, f"refused: {note}")
        note = f"extrapolated: {note}, {model.beyond}"
    # What a new set shows is not bound to the model: its own rates by position where they exist.
    shown = model.measured if depth <= model.measured.support else model
    doubt = partial(model.doubt, depth) if isinstance(model, HiddenMarkovModel) else None
    return _Plan(depth, note, partial(model.refitted, depth=depth), partial(shown.refitted, depth=depth), doubt)


def _by_ranks(model: RankTableModel, structure: str) -> _Plan:
    asked = Structure.parse(structure)
    if not isinstance(asked, ChainStructure | StaticTree):
        reason = "its nodes follow the drafter's scores, of which a cycle's ranks say nothing"
        return _Plan(None, f"refused: a dynamic tree is forecast only where it is the logged structure; {reason}")
    if asked.depth > model.support:
        return _Plan(None, f"refused: depth {model.support} is the deepest with ranks")
    paths = asked.paths
    if paths and max(path[-1] for path in paths) > model.ranks:
        return _Plan(None, f"refused: rank {model.ranks} is the last told apart in the log")
    rates = partial(model.tree_rates, paths=paths)
    if isinstance(asked, ChainStructure):
        return _Plan(asked.depth, "", rates, rates, partial(model.doubt, asked.depth))
    note = "assumes that candidates are as good behind every path as behind those logged"
    return _Plan(asked.depth, note, rates, rates, partial(model.tree_doubt, asked.depth))


class _Resamples:
    """Prompt weights of the refits and of the new sets, drawn once."""

    def __init__(self, model: AcceptanceModel, new_prompts: int, seed: int, n_resamples: int) -> None:
        counts = model.counts
        complete = np.asarray(counts.complete_cycles, dtype=np.float64)
        self.model, self.new_prompts, self.seed = model, new_prompts, seed
        self.enough = int((complete > 0).sum()) >= 2
        self.prompts = effective_prompts(complete)
        generator = np.random.default_rng(seed)
        n = len(counts.groups)
        batch = max(1, _BATCH_CELLS // max(n, 1))
        sizes = [min(batch, n_resamples - start) for start in range(0, n_resamples, batch)]
        even = np.full(n, 1 / n)
        # Weights of mean 1, whatever the size of the new set.
        self.weights = [
            (
                generator.multinomial(n, even, size).astype(np.float64),
                generator.multinomial(new_prompts, even, size).astype(np.float64) * (n / new_prompts),
            )
            for size in sizes
        ]
        self.n_resamples = n_resamples
        whole = 1 + np.sum(counts.total_accepted) / complete.sum() if complete.sum() else None
        known = float(tau(model.measured.rates[: model.measured.support]))
        # Cycles cut by an end of text count in the rates but not in a measured tau; the long ones are cut
        # more often.
        self.stop_gap = 0.0 if whole is None else max(0.0, 1 - float(whole) / known)

    def interval(self, plan: _Plan, rates: FloatArray, point: float) -> tuple[tuple[float, float] | None, str]:
        """Return the limits (None with fewer than two prompts) and a remark."""
        if plan.depth == 0 or plan.depth is None or plan.rates is None or plan.shown is None:
            return (1.0, 1.0), ""
        if not self.enough:
            return None, "no interval: fewer than two prompts with a complete cycle"
        draws: FloatArray = np.concatenate([tau(plan.shown(new)) - tau(plan.rates(fit)) for fit, new in self.weights])
        # The two means differ where the model is wrong; its error is not part of the interval, only its
        # noise is.
        draws += point - float(tau(plan.shown(self.model.once)[0]))
        limits = stretch(np.array(0.0), draws, small_sample_factor(self.prompts))
        low, high = float(limits[0]), float(limits[1])
        if plan.doubt is not None:
            wide = self._doubt(plan.doubt, rates, point)
            low, high = -math.hypot(low, wide[0]), math.hypot(high, wide[1])
        lo, hi = point + low - self.stop_gap * point, point + high
        remarks = []
        if self.stop_gap > 0.002:
            remarks.append(
                f"lower limit {self.stop_gap:.1%} down: cycles ended by a stop count in the rates, not in tau"
            )
        if plan.depth < self.model.support and not self.model.restarts:
            hi += ROUND_START_BIAS * point
            remarks.append(
                f"shorter than the {self.model.support} positions logged: rounds would start elsewhere; such "
                f"forecasts came out 2-7 % low, so the upper limit is raised by {ROUND_START_BIAS:.0%}"
            )
        return (max(lo, 1.0), min(hi, plan.depth + 1.0)), "; ".join(remarks)

    def _doubt(
        self, doubt: Callable[[int, np.random.Generator], FloatArray], rates: FloatArray, point: float
    ) -> tuple[float, float]:
        """Offsets down and up for what the model may be wrong by, and for cycles beyond the logged depth."""
        generator = np.random.default_rng([self.seed, len(rates)])
        draws = point * (doubt(self.n_resamples, generator) - 1)
        beyond = np.maximum(np.arange(len(rates) + 1) - self.model.support, 0)
        pmf = length_pmf(rates)
        variance = float(pmf @ beyond**2 - (pmf @ beyond) ** 2)
        cycles = np.mean(self.model.counts.cycles) * self.new_prompts
        draws += generator.normal(0, np.sqrt(variance / cycles), len(draws))
        low, high = np.quantile(draws, [0.025, 0.975])
        return float(min(low, 0.0)), float(max(high, 0.0))
