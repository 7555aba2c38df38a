"""Rates of a draft tree's nodes, floats or exact: how they are read, and how probable each node then is.

A node v other than the root has the conditional rate r_v, P(v is the target's token | its parent is accepted). Siblings
exclude one another, so the rates of one node's children sum to at most 1 (floats: 1 + 1e-9). Rates may be floats, or
exact: an array that holds a Fraction is computed with as it stands.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from gumiho_theory.errors import InputError
from gumiho_theory.types import AnyArray, IntArray

_SUM_TOLERANCE = 1e-9


def exact_or_float(values: Any, name: str) -> AnyArray:
    """Return numbers as an object array of Fractions when a Fraction is among them, else as float64."""
    try:
        array = np.asarray(values)
        if array.dtype == object and any(isinstance(value, Fraction) for value in array.flat):
            exact: AnyArray = np.vectorize(Fraction, otypes=[object])(array)
            return exact
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(name, error, "numbers, all of one kind") from None


def read_node_rates(parents: IntArray, values: Any) -> AnyArray:
    """Return the rates [N] of the nodes that have these parents [N], once they are such; the root's set to 1.

    Raises InputError: For another length, a rate outside [0, 1], or children of one node that sum to more than 1.
    """
    rates = exact_or_float(values, "node rates")
    if rates.shape != parents.shape:
        raise InputError("node rates", f"shape {rates.shape}", f"{len(parents)} rates, one a node")
    rates[0] = Fraction(1) if rates.dtype == object else 1.0
    bad = ~np.asarray((rates >= 0) & (rates <= 1), dtype=bool)
    if bad.any():
        node = int(bad.argmax())
        raise InputError(f"node rates, node {node}", rates[node], "a rate in [0, 1]")
    sums = np.zeros_like(rates)
    np.add.at(sums, parents[1:], rates[1:])
    if (sums > (1 if rates.dtype == object else 1 + _SUM_TOLERANCE)).any():
        node = int(sums.argmax())
        raise InputError(f"node rates, children of node {node}", f"a sum of {sums[node]}", "at most 1")
    return rates


def reached(parents: IntArray, rates: AnyArray) -> AnyArray:
    """R_v [N]: the probability that a node is accepted, the product of the rates along its path; 1 at the root."""
    products = rates.copy()
    for node in range(1, len(parents)):
        products[node] *= products[parents[node]]
    return products
