"""What allocations are compared from: a folder of cycle traces, and one cost profile or a folder of them."""

from __future__ import annotations

import os
from pathlib import Path

from gumiho_theory import CostProfile, InputError, Trace
from gumiho_theory.files import reason

_MOST = 1000  # files of a folder


def read_traces(folder: str | os.PathLike[str]) -> tuple[dict[str, Trace], tuple[str, ...]]:
    """Read every trace of a folder.

    Parameters
    ----------
    folder
        Holds files that end in .parquet; others and subfolders are not looked at.

    Returns
    -------
    traces : dict
        By file name, in order.
    warnings : tuple of str
        Files that are no cycle traces.

    Raises
    ------
    InputError
        No such folder, no such file in it, or more than 1000.
    """
    if not os.path.isdir(folder):
        raise InputError(folder, "no folder", "a folder of cycle traces (Parquet)")
    traces, warnings = {}, []
    for path in _files(folder, ".parquet", "cycle traces"):
        try:
            traces[path.name] = Trace.read(path)
        except InputError as error:
            warnings.append(f"left out: {error}")
    if not traces:
        raise InputError(folder, "; ".join(warnings), "at least one cycle trace that can be read")
    return traces, tuple(warnings)


def read_profiles(place: str | os.PathLike[str]) -> CostProfile | dict[str, CostProfile]:
    """Read a cost profile, or every one of a folder.

    Parameters
    ----------
    place
        A profile (JSON), or a folder of them, one a drafter; its other files and subfolders are not looked at.

    Returns
    -------
    CostProfile or dict
        A folder's by their drafters.

    Raises
    ------
    InputError
        A file that is no profile, a folder without any or with more than 1000, or two of one drafter.
    """
    if not os.path.isdir(place):
        return CostProfile.read(place)
    profiles: dict[str, CostProfile] = {}
    read: dict[str, Path] = {}
    for path in _files(place, ".json", "cost profiles"):
        profile = CostProfile.read(path)
        if profile.drafter in profiles:
            found = f"drafter {profile.drafter!r}, as in {read[profile.drafter].name}"
            raise InputError(path, found, "one profile a drafter")
        profiles[profile.drafter], read[profile.drafter] = profile, path
    return profiles


def _files(folder: str | os.PathLike[str], suffix: str, what: str) -> list[Path]:
    try:
        files = sorted(path for path in Path(folder).iterdir() if path.suffix == suffix and not path.is_dir())
    except OSError as error:
        raise InputError(folder, reason(error), f"a folder of {what} that can be read") from error
    if not 1 <= len(files) <= _MOST:
        raise InputError(folder, f"{len(files)} {suffix} files", f"1 to {_MOST} {what}")
    return files
