"""The cycle trace that a run of another structure would have written, from an every-position log."""

from __future__ import annotations

from typing import Any

import numpy as np

from gumiho_simulator.replaying.cycles import replay_cycles, stop_accepted
from gumiho_theory import ChainStructure, DynamicTree, EveryPositionLog, StaticTree, Structure, Trace
from gumiho_theory.logs.schema import group_codes
from gumiho_theory.types import IntArray

_NEVER_TIMED = ("draft_seconds", "verify_seconds", "other_seconds", "expected_accepted")
_RANKS = ("rank", "q_draft", "p_target")


def replay_trace(log: EveryPositionLog, structure: Structure | str) -> Trace:
    """Replay one structure (see `replay_cycles`) and write its cycles as a trace, so that models can be fitted to them.

    Returns
    -------
    Trace
        Cycles in the log's order of prompts and turns, without times. A chain's trace holds the true token's ranks and
        probabilities where the position was at risk; a tree's does not, since behind its leaves nothing is drafted. The
        provenance is the log's, with the structure, and ``replayed`` true.
    """
    cycles = replay_cycles(log, structure)
    asked, rows, accepted, complete = cycles.structure, cycles.row, cycles.accepted, cycles.complete
    assert asked.depth is not None  # replay_cycles refuses others
    room = np.minimum(log.drafted[rows], asked.depth)
    # Not complete: a stop was accepted at this depth, or the context ended and cut the draft.
    stopped = ~complete & stop_accepted(log, rows, accepted)
    censored_at = np.where(complete, -1, np.where(stopped, accepted, room))
    output = group_codes(log.prompt_id, log.turn)
    first = np.flatnonzero(np.diff(output[rows], prepend=-1))
    number = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    last = np.diff(output[rows], append=-1) != 0
    final = _last_rows(log, output)[output[rows]]
    ends = log.position[final] + (log.stop_reason[final] == "eos")  # a stop id has no row of its own
    reasons = log.stop_reason[final]
    reasons[~last] = None
    arrays: dict[str, Any] = {
        "prompt_id": log.prompt_id[rows],
        "task": log.task[rows],
        "turn": log.turn[rows],
        "cycle": number,
        "position": log.position[rows],
        "drafted": room,
        "nodes": _nodes(asked, room),
        "accepted": accepted,
        "committed": np.minimum(accepted + 1, ends - log.position[rows]),
        "censored_at": censored_at,
        "stop_reason": reasons,
    }
    width = int(room.max(initial=0))
    nothing = np.full(len(rows), np.nan)
    arrays |= dict.fromkeys(_NEVER_TIMED, nothing)
    missing = [*_NEVER_TIMED]
    if isinstance(asked, ChainStructure):
        limit = np.where(complete, room, censored_at)
        at_risk = np.arange(width) < np.minimum(accepted + 1, limit)[:, None]
        arrays["rank"] = np.where(at_risk, log.rank[rows, :width], 0)
        arrays |= {name: np.where(at_risk, getattr(log, name)[rows, :width], np.nan) for name in _RANKS[1:]}
        missing += [name for name in _RANKS if name in log.missing]
    else:
        arrays["rank"] = np.zeros((len(rows), width), dtype=np.int64)
        arrays |= dict.fromkeys(_RANKS[1:], np.full((len(rows), width), np.nan))
        missing += _RANKS
    if "task" in log.missing:
        missing.append("task")
    facts = {name: value for name, value in log.provenance.items() if name not in ("schema", "structures", "top_k")}
    facts |= {"structure": str(asked), "replayed": True}
    return Trace(**arrays, provenance=facts, missing=tuple(missing))


def _last_rows(log: EveryPositionLog, output: IntArray) -> IntArray:
    """Return for each output its last row."""
    last = np.zeros(int(output.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(last, output, np.arange(log.n_rows))
    return last


def _nodes(structure: Structure, room: IntArray) -> IntArray:
    """Return the nodes verified, root included, of a structure cut to each room."""
    if isinstance(structure, DynamicTree):
        return np.where(room > 0, np.maximum(structure.total, room + 1), 1)
    assert isinstance(structure, ChainStructure | StaticTree)
    by_depth = np.bincount([len(path) for path in structure.paths], minlength=(structure.depth or 0) + 1)
    nodes: IntArray = 1 + np.cumsum(by_depth)[room]
    return nodes
