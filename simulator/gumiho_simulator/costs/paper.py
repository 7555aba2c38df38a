"""Published speed-ups as a test of the cost model: their ratio is that of tau times one ratio of cycle times.

A speed-up S of tau tokens a cycle means cycles of tau / S plain steps. If a method's cycles cost the same number of
plain steps on every target, the ratio of two methods' speed-ups is that of their tau times one constant, the ratio of
their cycle times. That constant is fitted on some targets here and tried on the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from gumiho_theory import InputError
from gumiho_theory.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RatioPrediction:
    """Predicted ratios of speed-ups, Gumiho's over EAGLE-2's, beside the published ones.

    Parameters
    ----------
    fitted_on
        Targets that the cost ratio is fitted on.
    cost_ratio
        Cycle time of EAGLE-2 over that of Gumiho, geometric mean.
    predicted, published : ndarray [M]
        Of the other targets, each benchmark and temperature.
    """

    fitted_on: tuple[str, ...]
    cost_ratio: float
    predicted: FloatArray
    published: FloatArray

    @property
    def errors(self) -> FloatArray:
        """Signed relative errors [M]."""
        errors: FloatArray = self.predicted / self.published - 1
        return errors


def published_speedups() -> pd.DataFrame:
    """Read the shipped rows of the paper's main table.

    Returns
    -------
    DataFrame
        target, method (EAGLE-2, Gumiho), temperature, benchmark, speedup (over plain decoding), tau (bonus included),
        as in table 1 of arXiv 2503.10135v2.
    """
    import pandas as pd

    with (files("gumiho_simulator.costs") / "data" / "gumiho_table_1.csv").open("rb") as file:
        return pd.read_csv(file, comment="#")


def predict_ratios(fitted_on: Collection[str]) -> RatioPrediction:
    """Fit the cost ratio on some targets and predict the speed-up ratios of the others.

    Parameters
    ----------
    fitted_on
        Names of targets, at least one and not all of them.

    Returns
    -------
    RatioPrediction
        Ratios are of Gumiho to EAGLE-2.

    Raises
    ------
    InputError
        An unknown target, none, or all of them.
    """
    table = _ratios()
    known = set(table.index.get_level_values("target"))
    if not set(fitted_on) < known or not fitted_on:
        raise InputError("targets", sorted(fitted_on), f"some, not all, of {', '.join(sorted(known))}")
    train = table.index.get_level_values("target").isin(list(fitted_on))
    cost = float(np.exp(np.log(table["speedup"] / table["tau"])[train].mean()))
    test = table[~train]
    return RatioPrediction(
        tuple(sorted(fitted_on)), cost, (test["tau"] * cost).to_numpy(np.float64), test["speedup"].to_numpy(np.float64)
    )


def every_half() -> tuple[RatioPrediction, ...]:
    """Predict by every half of the targets (rounded down), so that no split is chosen.

    Returns
    -------
    tuple of RatioPrediction
        One a choice of targets to fit on.
    """
    targets = sorted(set(published_speedups()["target"]))
    return tuple(predict_ratios(half) for half in itertools.combinations(targets, len(targets) // 2))


def _ratios() -> pd.DataFrame:
    table = published_speedups().set_index(["method", "target", "temperature", "benchmark"])
    ours, theirs = (table[table.index.get_level_values("method") == name] for name in ("Gumiho", "EAGLE-2"))
    return ours.droplevel("method") / theirs.droplevel("method")
