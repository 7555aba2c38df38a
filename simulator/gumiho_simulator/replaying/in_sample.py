"""Whether a static tree is judged on the very prompts that it was chosen by."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from gumiho_theory import EveryPositionLog, InputError, StaticTree, Trace
from gumiho_theory.files import read_json

_DIGITS = 12  # of a prompt's hash
_MOST_PROMPTS = 20_000


def made_from(log: Trace | EveryPositionLog, path: Path) -> dict[str, Any]:
    """Return what a tree file keeps of the log that the tree was chosen by.

    Parameters
    ----------
    log
        The log.
    path
        Its file.

    Returns
    -------
    dict
        file (its name), target, drafter, prompts (their number) and prompt_hashes, of their ids (of 20,000 at most).
    """
    facts = {name: log.provenance.get(name) for name in ("target", "drafter")}
    hashes = sorted(_hashes(log.prompts))[:_MOST_PROMPTS]
    return {"file": path.name, **facts, "prompts": len(log.prompts), "prompt_hashes": hashes}


def in_sample_note(tree: StaticTree, log: EveryPositionLog) -> str | None:
    """Say so where a tree was chosen by prompts of a log.

    Parameters
    ----------
    tree
        A tree; only one that was read from a file can say what it was made from.
    log
        The log that it is replayed on.

    Returns
    -------
    str or None
        Prompts are told by their ids. None where the file does not say, or the prompts are others.
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
