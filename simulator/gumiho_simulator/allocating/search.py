"""The best allocation of draft heads by exact enumeration, from the rates of each type of head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from gumiho_simulator.allocating.heads import Allocation, Allocations, HeadCosts, pareto_front
from gumiho_theory import CostProfile, DraftTree, InputError
from gumiho_theory.types import FloatArray

TYPES = ("serial", "parallel")
_DEEPEST = 64  # positions: the number of allocations grows with their square
_MOST_NODES = 4096


def allocate(
    profile: CostProfile,
    rates_by_head_type: Mapping[str, ArrayLike],
    positions: int,
    nodes: Sequence[int] = (),
) -> Allocations:
    """Try every number of serial steps, of parallel heads behind them, and of nodes; take the fastest.

    Parameters
    ----------
    profile
        Step times of the pair.
    rates_by_head_type : mapping of "serial", "parallel" to array_like [D] or [D, R]
        P(the candidate of rank r at position i is right | all before it are) if a head of that type drafts position i.
        One rank, [D], makes chains. A type that is left out is not used.
    positions
        Deepest position to try, at most D of each type.
    nodes
        Tokens verified (root included) to try with more than one rank: the best tree of so many nodes is taken,
        under the assumption that ranks at one position do not depend on those before. Chains have their length + 1.

    Returns
    -------
    Allocations
        Without intervals: rates carry none. tau has the bonus token included.

    Raises
    ------
    InputError
        Another type, rates that are no such probabilities, positions or nodes out of range, parallel heads whose time
        the profile does not know, or nothing left to try.
    """
    tables = _tables(rates_by_head_type, positions)
    width = max(table.shape[1] for table in tables.values())
    if width > 1 and not nodes:
        raise InputError("nodes", "none", "numbers of verified nodes to try, since rates by rank make trees")
    for total in nodes:
        if not 2 <= total <= _MOST_NODES:
            raise InputError("nodes", total, f"2 to {_MOST_NODES}")
    costs = HeadCosts(profile)
    rows: list[Allocation] = []
    for serial in range(positions + 1 if "serial" in tables else 1):
        for parallel in range(positions - serial + 1 if "parallel" in tables else 1):
            depth = serial + parallel
            if depth == 0:
                continue
            parts = [tables[name][low:high] for name, low, high in _spans(serial, depth) if high > low]
            draft = costs.draft_seconds(depth, serial, None, parallel)
            for total, tau in _best_trees(np.concatenate(parts), nodes):
                seconds = draft + profile.verify_at(total) + profile.other_seconds
                speedup = tau * profile.baseline_seconds / seconds
                shape = None if width > 1 else f"chain:{depth}"
                layers = profile.serial_layers if serial else 0
                rows.append(
                    Allocation(serial, parallel, layers, total, tau, None, None, seconds, speedup, structure=shape)
                )
    if not rows:
        raise InputError("nodes", list(nodes), f"a number that {positions} positions of {width} candidates have")
    best = max(rows, key=lambda row: row.speedup)
    return Allocations(tuple(rows), best, pareto_front(rows), assumptions=tuple(costs.assumptions))


def _spans(serial: int, depth: int) -> tuple[tuple[str, int, int], tuple[str, int, int]]:
    return ("serial", 0, serial), ("parallel", serial, depth)


def _tables(rates: Mapping[str, ArrayLike], positions: int) -> dict[str, FloatArray]:
    """Return [positions, R] rates of each type, R the same for all."""
    if not 1 <= positions <= _DEEPEST:
        raise InputError("positions", positions, f"1 to {_DEEPEST}")
    unknown = set(rates) - set(TYPES)
    if unknown or not rates:
        raise InputError("rates by head type", sorted(unknown) or "none", " or ".join(TYPES))
    tables = {}
    for name, values in rates.items():
        table = np.asarray(values, dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or table.shape[0] < positions or not table.shape[1]:
            raise InputError(f"{name} rates", f"shape {table.shape}", f"at least {positions} positions")
        try:
            # The smallest tree of all: it checks the whole table.
            DraftTree.best_first(table, 1)
        except InputError as error:
            raise error.within(f"{name} heads") from None
        tables[name] = table[:positions]
    width = max(table.shape[1] for table in tables.values())
    return {name: np.pad(table, ((0, 0), (0, width - table.shape[1]))) for name, table in tables.items()}


def _best_trees(table: FloatArray, nodes: Sequence[int]) -> list[tuple[int, float]]:
    """Return (nodes, tau) of the best trees of the sizes asked for, or of the one chain there is."""
    depth, width = table.shape
    if width == 1:
        return [(depth + 1, 1.0 + float(np.cumprod(table[:, 0]).sum()))]
    room = 1
    for level in range(depth):
        room = min(room + width ** (level + 1), _MOST_NODES)
    sizes = sorted({total for total in nodes if total <= room})
    if not sizes:
        return []
    tree = DraftTree.best_first(table, sizes[-1])
    reached = np.ones(tree.n_nodes)
    for node in range(1, tree.n_nodes):
        reached[node] = reached[tree.parents[node]] * table[tree.depths[node] - 1, tree.ranks[node] - 1]
    # The first n nodes of a best-first tree are themselves the best tree of n nodes; the root stands for the bonus.
    taus = np.cumsum(reached)
    return [(total, float(taus[total - 1])) for total in sizes]
