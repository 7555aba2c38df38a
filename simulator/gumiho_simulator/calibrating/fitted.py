"""Score calibration: from an every-position log, what draft probabilities are worth as acceptance probabilities.

Behind the true prefix each depth of each row is one question: which of the drafter's candidates is the true token, if
any? A map by depth is fitted to some prompts and its error measured on the others; the file's maps are then fitted to
all prompts, so that the measured error is that of maps with fewer prompts behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gumiho_simulator.calibrating.error import CalibrationError, Reliability, Scored, calibration_error, reliability
from gumiho_simulator.calibrating.maps import Candidates, ScoreMap, fit_isotonic, fit_temperature
from gumiho_simulator.forecasting.holdout import hold_out
from gumiho_theory import EveryPositionLog, InputError, ScoreCalibration
from gumiho_theory.logs.schema import group_codes

GOOD = 0.03  # calibration error that a map is to stay within, in units of probability
FITS: dict[str, Callable[[Candidates], ScoreMap]] = {"temperature": fit_temperature, "isotonic": fit_isotonic}


@dataclass(frozen=True)
class DepthCalibration:
    """One depth, from 1, on `n` held-out places. Errors are in units of probability; see `calibration_error`.

    They are of all logged candidates, misses included: `before` of the draft probabilities, `after` of the map fitted
    to the others; and the same of each place's `first` candidate alone: a chain's acceptance. All candidates together
    have smaller errors, most of them being hopeless and known to be so; of these are the reliability diagrams.
    """

    depth: int
    n: int
    before: CalibrationError
    after: CalibrationError
    first_before: CalibrationError
    first_after: CalibrationError
    reliability_before: Reliability
    reliability_after: Reliability


@dataclass(frozen=True)
class Calibrated:
    """A calibration and how well such a one does on prompts it was not fitted to.

    Parameters
    ----------
    calibration, kind
        The maps, fitted to all prompts; temperature or isotonic.
    depths
        Held-out errors of maps fitted to the other prompts, by depth.
    fit_prompts, holdout_prompts, seed
        Number of prompts on either side of the split; its seed and that of the resampling.
    """

    calibration: ScoreCalibration
    kind: str
    depths: tuple[DepthCalibration, ...]
    fit_prompts: int
    holdout_prompts: int
    seed: int

    @property
    def good(self) -> bool:
        """Whether the held-out error after is at most 0.03 at every depth."""
        return all(one.after.error <= GOOD for one in self.depths)

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho calibrate --json`` prints, lists being by depth.

        error_after_ci holds 95 % limits without what chance adds, noise what error_after would be without any error;
        first_before, first_after and first_noise are of the first candidates alone; beta is None but of temperature
        maps.
        """
        maps = [one.to_json() for one in self.calibration.maps]
        return {
            "map": self.kind,
            "good": self.good,
            "error_before": [one.before.error for one in self.depths],
            "error_after": [one.after.error for one in self.depths],
            "error_after_ci": [None if one.after.lo is None else [one.after.lo, one.after.hi] for one in self.depths],
            "n": [one.n for one in self.depths],
            "noise": [one.after.noise for one in self.depths],
            "first_before": [one.first_before.error for one in self.depths],
            "first_after": [one.first_after.error for one in self.depths],
            "first_noise": [one.first_after.noise for one in self.depths],
            "beta": [one.get("beta") for one in maps] if self.kind == "temperature" else None,
            "fit_prompts": self.fit_prompts,
            "holdout_prompts": self.holdout_prompts,
            "fitted_to": "all prompts; errors: held-out prompts, maps fitted to the others",
        }


def calibrate(log: EveryPositionLog, kind: str = "temperature", holdout: float = 0.5, seed: int = 0) -> Calibrated:
    """Fit a score calibration to an every-position log.

    Parameters
    ----------
    log
        A log with candidates (``top_ids``, ``top_q``), whose provenance names the drafter and its weights.
    kind
        temperature: one number a depth, sharpening or flattening the whole distribution. isotonic: any non-decreasing
        function of a candidate's own draft probability, blind to the other candidates.
    holdout, seed
        As in `gumiho_simulator.forecasting.validate`; the errors are those on the prompts held out.

    Returns
    -------
    Calibrated
        The calibration, of the depths that are known on both sides of the split; deeper positions take the last.

    Raises
    ------
    InputError
        An unknown kind, `holdout` outside (0, 1), fewer than two prompts on either side, or a log that lacks the
        candidates or the drafter's name and fingerprint.
    """
    if kind not in FITS:
        raise InputError("map", repr(kind), " or ".join(FITS))
    for name in ("true_token", "top_ids", "top_q"):
        if name in log.missing or not log.top_k:
            raise InputError(f"log, column {name}", "none logged", "the drafter's candidates and the true tokens")
    split = hold_out(log, holdout, seed)
    noise = np.random.default_rng(seed).spawn(2)[1]  # the other split the prompts
    prompt = group_codes(log.prompt_id)
    held = set(split.held)
    test = np.isin(prompt, [number for number, name in enumerate(log.prompts) if name in held])

    maps: list[ScoreMap] = []
    depths: list[DepthCalibration] = []
    for depth in range(1, log.depth + 1):
        fitted_to, measured = (Candidates.of(log, depth, rows, prompt) for rows in (~test, test))
        if not (len(fitted_to.prompt) and len(measured.prompt)):
            break
        depths.append(_measure(depth, measured, FITS[kind](fitted_to), noise))
        maps.append(FITS[kind](Candidates.of(log, depth, np.ones(log.n_rows, dtype=bool), prompt)))
    if not maps:
        raise InputError("log, depth 1", "no candidates on one side of the split", "some for the fit and some held out")
    calibration = _named(log, kind, tuple(maps))
    return Calibrated(calibration, kind, tuple(depths), len(split.fit), len(split.held), seed)


def _measure(depth: int, held: Candidates, fitted: ScoreMap, noise: np.random.Generator) -> DepthCalibration:
    before, after = held.scored(None), held.scored(fitted)

    def error(scored: Scored) -> CalibrationError:
        return calibration_error(scored, noise)

    return DepthCalibration(
        depth=depth,
        n=len(held.prompt),
        before=error(before),
        after=error(after),
        first_before=error(held.scored(None, first=True)),
        first_after=error(held.scored(fitted, first=True)),
        reliability_before=reliability(before, noise),
        reliability_after=reliability(after, noise),
    )


def _named(log: EveryPositionLog, kind: str, maps: tuple[ScoreMap, ...]) -> ScoreCalibration:
    """Return the maps with the drafter they belong to, and what they were fitted to."""
    facts = log.provenance
    kept = ("target", "drafter", "method", "dtype", "temperature", "max_new_tokens", "top_k")
    provenance = {name: facts[name] for name in kept if name in facts}
    provenance |= {"map": kind, "prompts": len(log.prompts), "rows": log.n_rows}
    try:
        return ScoreCalibration(facts.get("drafter"), facts.get("drafter_fingerprint"), maps, provenance)  # type: ignore[arg-type]
    except InputError as error:
        raise error.within("log, provenance") from None
