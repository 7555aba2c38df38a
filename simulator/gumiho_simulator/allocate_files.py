"""What allocations are compared from: a folder of cycle traces, and one cost profile or a folder of them."""

from __future__ import annotations

import os
from pathlib import Path

from gumiho_theory import CostProfile, InputError, Trace

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
    place = Path(folder)
    if not place.is_dir():
        raise InputError(folder, "no folder", "a folder of cycle traces (Parquet)")
    files = sorted(path for path in place.iterdir() if path.suffix == ".parquet" and path.is_file())
    if not 1 <= len(files) <= _MOST:
        raise InputError(folder, f"{len(files)} .parquet files", f"1 to {_MOST} cycle traces")
    traces, warnings = {}, []
    for path in files:
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
    if not Path(place).is_dir():
        return CostProfile.read(place)
    files = sorted(path for path in Path(place).iterdir() if path.suffix == ".json" and path.is_file())
    if not 1 <= len(files) <= _MOST:
        raise InputError(place, f"{len(files)} .json files", f"1 to {_MOST} cost profiles")
    profiles: dict[str, CostProfile] = {}
    for path in files:
        profile = CostProfile.read(path)
        if profile.drafter in profiles:
            raise InputError(path, f"drafter {profile.drafter!r} a second time", "one profile a drafter")
        profiles[profile.drafter] = profile
    return profiles
