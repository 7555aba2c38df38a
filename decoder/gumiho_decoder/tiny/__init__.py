"""The embedded default: a small trained target, a trained drafter, and held-out prompts."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def embedded(name: str) -> Path:
    """Return the folder of an embedded model: `target` or `gumiho`."""
    return _HERE / name


PROMPTS = _HERE / "prompts.jsonl"
