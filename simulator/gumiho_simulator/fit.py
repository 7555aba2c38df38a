"""Fit an acceptance model to a trace or to counts, with a held-out score to choose by."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_simulator.acceptance import MODELS, AcceptanceModel, model_class
from gumiho_simulator.json_output import plain
from gumiho_theory import AcceptanceCounts, InputError, Trace
from gumiho_theory.files import read_json, write_json

SCHEMA = "gumiho.acceptance_model/1"
_FOLDS = 5
_SMOOTHING = 0.5


@dataclass(frozen=True)
class FitResult:
    """A fitted acceptance model.

    Parameters
    ----------
    model
        The model; its rates are conditional.
    structure
        Draft structure of the log, or None when the log does not say (then taken for a chain).
    log_likelihood
        Of the counts of the fit, nats.
    heldout_log_likelihood
        Summed over five prompt-wise folds, each scored with rates from the other folds smoothed by adding
        1/2 to both outcomes, nats; None with fewer than two prompts.
    n_cycles, n_prompts
        Size of the fit's data, censored cycles included.
    """

    model: AcceptanceModel
    structure: str | None
    log_likelihood: float
    heldout_log_likelihood: float | None
    n_cycles: int
    n_prompts: int

    def summary(self) -> dict[str, Any]:
        """Return what ``gumiho fit --json`` prints.

        Returns
        -------
        dict
            Keys model, structure, parameters, log_likelihood, heldout_log_likelihood, n_cycles, n_prompts.
        """
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
        """Return the model file's content: the summary, and the counts by prompt that intervals need.

        Returns
        -------
        dict
            With key schema = "gumiho.acceptance_model/1".
        """
        content = {"schema": SCHEMA, **self.summary(), "counts": self.model.counts.to_json()}
        return dict(plain(content))

    @classmethod
    def from_json(cls, value: dict[str, Any], place: str = "acceptance model") -> FitResult:
        """Rebuild a fit; the rates are estimated again from the counts, so they cannot disagree with them.

        Parameters
        ----------
        value
            A model file's content.
        place
            What an error names.

        Raises
        ------
        InputError
            Wrong schema, unknown model, or counts that are missing or inconsistent.
        """
        if value.get("schema") != SCHEMA:
            raise InputError(f"{place}: schema", repr(value.get("schema")), repr(SCHEMA))
        name, structure, counts = value.get("model"), value.get("structure"), value.get("counts")
        if not isinstance(name, str) or name not in MODELS:
            raise InputError(f"{place}: model", repr(name), f"one of {', '.join(MODELS)}")
        if structure is not None and not isinstance(structure, str):
            raise InputError(f"{place}: structure", repr(structure), "text or null")
        if not isinstance(counts, dict):
            raise InputError(f"{place}: counts", type(counts).__name__, "the counts of the fit")
        try:
            return _fit_one(AcceptanceCounts.from_json(counts), name, structure)
        except InputError as error:
            raise error.within(place) from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, whole or not at all.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        write_json(path, self.to_json())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> FitResult:
        """Read a model file.

        Raises
        ------
        InputError
            The file cannot be read or is not a model file.
        """
        return cls.from_json(read_json(path), str(path))


def fit(data: Trace | AcceptanceCounts, model: str = "auto") -> FitResult:
    """Fit an acceptance model by maximum likelihood, with censoring.

    Parameters
    ----------
    data
        A cycle trace, or counts by group with draft positions.
    model
        "hazard" (a rate a position), "geometric" (one rate), or "auto": the one with the higher log-
        likelihood on held-out prompts.

    Returns
    -------
    FitResult
        The fit; rates are conditional and pooled over cycles (micro).

    Raises
    ------
    InputError
        An unknown model, counts without positions, no cycle at risk, or "auto" with fewer than two prompts.
    """
    if isinstance(data, Trace):
        counts = data.counts_by_prompt()
        logged = data.provenance.get("structure")
        structure = logged if isinstance(logged, str) else None
    else:
        counts, structure = data, None
    if model != "auto":
        return _fit_one(counts, model, structure)
    fits = [_fit_one(counts, name, structure) for name in MODELS]
    scored = [(one.heldout_log_likelihood, one) for one in fits if one.heldout_log_likelihood is not None]
    if not scored:
        raise InputError("prompts", len(counts.groups), "at least two to choose a model; or name one")
    return max(scored, key=lambda pair: pair[0])[1]


def _fit_one(counts: AcceptanceCounts, name: str, structure: str | None) -> FitResult:
    fitted = model_class(name).fit(counts)
    return FitResult(
        model=fitted,
        structure=structure,
        log_likelihood=fitted.log_likelihood(counts),
        heldout_log_likelihood=_heldout(counts, name),
        n_cycles=int(np.sum(counts.cycles)),
        n_prompts=len(counts.groups),
    )


def _heldout(counts: AcceptanceCounts, name: str) -> float | None:
    """Score each of five prompt-wise folds under the others; every fifth prompt, so that tasks mix."""
    at_risk = np.asarray(counts.at_risk).sum(axis=1)
    # A prompt without a cycle at risk adds nothing to a score, and a fold of only such prompts could not be
    # fitted.
    useful = [group for group, seen in zip(counts.groups, at_risk, strict=True) if seen > 0]
    folds = min(_FOLDS, len(useful))
    if folds < 2:
        return None
    score = 0.0
    for fold in range(folds):
        test = useful[fold::folds]
        train = [group for index, group in enumerate(useful) if index % folds != fold]
        score += model_class(name).fit(counts.select(train)).log_likelihood(counts.select(test), _SMOOTHING)
    return score
