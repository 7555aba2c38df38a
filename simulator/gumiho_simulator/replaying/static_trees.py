"""Static trees chosen by a log's ranks, and whether one is judged on the very prompts that it was chosen by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from gumiho_theory import EveryPositionLog, InputError, StaticTree, Trace, rank_rates
from gumiho_theory.files import read_json

_DIGITS = 12  # of a prompt's hash
_MOST_PROMPTS = 20_000


@dataclass(frozen=True)
class BestTree:
    """A static tree chosen by a log's rank rates.

    Parameters
    ----------
    tau
        Expected with those rates (bonus included) under path independence: in sample, so without an interval.
    at_risk
        Cycles at risk of the log by depth.
    made_from
        What its file keeps of the log: target, drafter, prompts (their number) and prompt_hashes, of their ids (of
        20,000 at most).
    """

    tree: StaticTree
    tau: float
    at_risk: tuple[int, ...]
    made_from: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho tree --json`` prints."""
        return {
            "nodes": self.tree.tree.n_nodes,
            "depth": self.tree.depth,
            "tau": self.tau,
            "tau_convention": "bonus included; expected under path independence, in sample, no interval",
            "at_risk": list(self.at_risk),
        }

    def write(self, path: Path, log: Path) -> None:
        """Write the tree's file, with the name of the log's file in it; InputError where it cannot be written."""
        self.tree.write(path, {"file": log.name, **self.made_from})


def best_tree(trace: Trace, nodes: int = 16, ranks: int = 10) -> BestTree:
    """Choose the static tree with the largest expected accepted length by a log's rank rates.

    Parameters
    ----------
    trace
        A cycle trace that logs ranks.
    nodes, ranks
        Nodes of the tree, root included, and candidates that a node may open.

    Raises
    ------
    InputError
        A trace without ranks.
    """
    counted = rank_rates(trace, ranks)
    best = StaticTree.best(counted.rates, nodes)
    expected = best.tree.expected_accepted([0.0, *(counted.rates[len(p) - 1, p[-1] - 1] for p in best.paths)])
    facts = {name: trace.provenance.get(name) for name in ("target", "drafter")}
    hashes = sorted(_hashes(trace.prompts))[:_MOST_PROMPTS]
    made_from = {**facts, "prompts": len(trace.prompts), "prompt_hashes": hashes}
    return BestTree(best, 1.0 + expected, tuple(counted.at_risk.tolist()), made_from)


def in_sample_note(tree: StaticTree, log: EveryPositionLog) -> str | None:
    """Say so where a tree was chosen by prompts of a log, told by their ids.

    None where the prompts are others, or the tree's file does not say; one that was not read from a file cannot.
    """
    if tree.source is None:
        return None
    try:
        facts = read_json(tree.source).get("made_from")
    except InputError:  # gone since it was read
        return None
    hashes = facts.get("prompt_hashes") if isinstance(facts, dict) else None
    if not isinstance(hashes, list):
        return None
    shared = len(_hashes(log.prompts) & {one for one in hashes if isinstance(one, str)})
    if not shared:
        return None
    return f"in sample: the tree was chosen by {shared} of these {len(log.prompts)} prompts, so its tau may be too high"


def _hashes(prompts: Iterable[str]) -> set[str]:
    return {sha256(prompt.encode("utf-8")).hexdigest()[:_DIGITS] for prompt in prompts}
