"""Where the embedded models lie: a small trained target, drafters with their calibrations, held-out prompts."""

from __future__ import annotations

from pathlib import Path

from gumiho_theory import InputError

_HERE = Path(__file__).parent / "tiny"


def embedded(name: str) -> Path:
    """Return the folder of an embedded model: `target`, or a drafter's name."""
    return _HERE / name


def calibration_path(path: Path) -> Path:
    """Return where a score calibration stands: `tiny:gumiho`, … are those of the embedded drafters.

    Raises
    ------
    InputError
        No embedded drafter of that name has one.
    """
    kind, _, name = str(path).partition(":")
    if kind != "tiny":
        return path
    there = {file.stem: file for file in CALIBRATIONS.glob("*.json")}
    if name not in there:
        raise InputError("--calibration", repr(str(path)), ", ".join(f"tiny:{stem}" for stem in sorted(there)))
    return there[name]


CALIBRATIONS = _HERE / "calibrations"
PROMPTS = _HERE / "prompts.jsonl"
