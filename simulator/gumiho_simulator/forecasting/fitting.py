"""Fit an acceptance model to a trace or to counts, with a held-out score to choose by."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gumiho_simulator.acceptance import MODELS, AcceptanceModel, HiddenMarkovModel, Observations, model_class
from gumiho_theory import AcceptanceCounts, InputError, Trace
from gumiho_theory.files import read_json, write_json
from gumiho_theory.json_output import plain

SCHEMA = "gumiho.acceptance_model/1"
_FOLDS = 5
_SMOOTHING = 0.5


@dataclass(frozen=True)
class FitResult:
    """A fitted acceptance model; its rates are conditional.

    Parameters
    ----------
    observed
        What the log showed, as far as the model needs it.
    structure
        Draft structure of the log, or None when the log does not say (then taken for a chain).
    """

    model: AcceptanceModel
    observed: Observations
    structure: str | None

    @cached_property
    def log_likelihood(self) -> float:
        """Of the log that was fitted, nats."""
        return self.model.log_likelihood(self.observed)

    @cached_property
    def heldout_log_likelihood(self) -> float | None:
        """Log-likelihood of prompts under fits to others, nats; None with fewer than two prompts.

        Summed over five prompt-wise folds, each scored by a fit to the other folds. Every model scores the same: the
        accepted length of each cycle given the past of its prompt. Rates that are ratios of counts are smoothed by
        adding 1/2 to both outcomes.
        """
        return _heldout(self.observed, self.model)

    @property
    def n_cycles(self) -> int:
        """Cycles of the log, censored ones included."""
        return int(np.sum(self.observed.counts.cycles))

    @property
    def n_prompts(self) -> int:
        """Prompts of the log."""
        return len(self.observed.counts.groups)

    def summary(self) -> dict[str, Any]:
        """Return what ``gumiho fit --json`` prints."""
        return {
            "model": self.model.name,
            "structure": self.structure,
            "parameters": self.model.parameters,
            "log_likelihood": self.log_likelihood,
            "heldout_log_likelihood": self.heldout_log_likelihood,
            "n_cycles": self.n_cycles,
            "n_prompts": self.n_prompts,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the model file's content: the summary, and what the log showed by prompt, which intervals need."""
        return dict(plain({"schema": SCHEMA, **self.summary(), **self.observed.to_json()}))

    @classmethod
    def from_json(cls, value: dict[str, Any], place: str = "acceptance model") -> FitResult:
        """Rebuild a fit; it is estimated again from what the log showed, so it cannot disagree with that.

        InputError, at `place`, for a wrong schema, an unknown model, or observations that are missing or inconsistent.
        """
        if value.get("schema") != SCHEMA:
            raise InputError(f"{place}: schema", repr(value.get("schema")), repr(SCHEMA))
        name, structure = value.get("model"), value.get("structure")
        if not isinstance(name, str) or name not in MODELS:
            raise InputError(f"{place}: model", repr(name), f"one of {', '.join(MODELS)}")
        if structure is not None and not isinstance(structure, str):
            raise InputError(f"{place}: structure", repr(structure), "text or null")
        try:
            return _fit_one(Observations.from_json(value), name, structure)
        except InputError as error:
            raise error.within(place) from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, whole or not at all; InputError where it cannot be written."""
        write_json(path, self.to_json())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> FitResult:
        """Read a model file; InputError where it cannot be read or is none."""
        return cls.from_json(read_json(path), str(path))


def fit(data: Trace | AcceptanceCounts, model: str = "auto") -> FitResult:
    """Fit an acceptance model by maximum likelihood, with censoring; its rates are pooled over cycles (micro).

    Parameters
    ----------
    data
        A cycle trace, or counts by group with draft positions.
    model
        "hazard" (a rate a position), "geometric" (one rate), "mixture" (prompts of different difficulty), "hmm" (a
        hidden difficulty that lasts over tokens: needs a trace), "rank" (static trees: needs a trace with ranks), or
        "auto": the one with the highest log-likelihood on held-out prompts of all that the log allows. Ranks add
        nothing to the likelihood of accepted lengths; "auto" leaves them aside.

    Raises
    ------
    InputError
        An unknown model, a log without what the model needs, no cycle at risk, or "auto" with fewer than two prompts.
    """
    observed, structure = Observations.of(data), None
    if isinstance(data, Trace):
        logged = data.provenance.get("structure")
        structure = logged if isinstance(logged, str) else None
    if model != "auto":
        return _fit_one(observed, model, structure)
    names = [name for name in possible(observed) if name != "rank"]
    fits = [_fit_one(observed, name, structure) for name in names]
    scored = [(one.heldout_log_likelihood, one) for one in fits if one.heldout_log_likelihood is not None]
    if not scored:
        raise InputError("prompts", len(observed.counts.groups), "at least two to choose a model; or name one")
    return max(scored, key=lambda pair: pair[0])[1]


def possible(observed: Observations) -> tuple[str, ...]:
    """Return the names of the models that a log has everything for."""
    return tuple(name for name, kind in MODELS.items() if observed.has(kind.needs))


def _fit_one(observed: Observations, name: str, structure: str | None) -> FitResult:
    kind = model_class(name)
    observed.need(name, kind.needs)
    observed = observed.keep(kind.needs)
    return FitResult(kind.fit(observed), observed, structure)


def _heldout(observed: Observations, fitted: AcceptanceModel) -> float | None:
    """Score each of five prompt-wise folds under the others; every fifth prompt, so that tasks mix."""
    at_risk = np.asarray(observed.counts.at_risk).sum(axis=1)
    # A prompt without a cycle at risk adds nothing to a score, and a fold of only such prompts could not be
    # fitted.
    useful = [group for group, seen in zip(observed.counts.groups, at_risk, strict=True) if seen > 0]
    folds = min(_FOLDS, len(useful))
    if folds < 2:
        return None
    score = 0.0
    for fold in range(folds):
        test = observed.select(useful[fold::folds])
        train = observed.select([group for index, group in enumerate(useful) if index % folds != fold])
        if isinstance(fitted, HiddenMarkovModel):
            # From the optimum of all prompts that of four fifths is a few steps away.
            one: AcceptanceModel = HiddenMarkovModel.fit(train, fitted.states, fitted.theta)
        else:
            one = model_class(fitted.name).fit(train)
        score += one.log_likelihood(test, _SMOOTHING)
    return score
