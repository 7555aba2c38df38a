"""The embedded default: a small trained target, trained drafters with their calibrations, and held-out prompts."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def embedded(name: str) -> Path:
    """Return the folder of an embedded model: `target`, or a drafter's name."""
    return _HERE / name


def calibration_path(path: Path) -> Path:
    """Return where a score calibration stands: `tiny:gumiho`, … are those of the embedded drafters."""
    kind, _, name = str(path).partition(":")
    return CALIBRATIONS / f"{name}.json" if kind == "tiny" else path


CALIBRATIONS = _HERE / "calibrations"
PROMPTS = _HERE / "prompts.jsonl"
