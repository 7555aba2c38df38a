"""Places to write, checked before hours of work: nothing of another kind is written over."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gumiho_theory import InputError
from gumiho_theory.files import check_output, check_writable, reason

PARQUET = b"PAR1"
PROFILE = b"gumiho.cost_profile"


def check_place(path: Path, kind: bytes, others: Iterable[Path] = (), name: str = "--output") -> None:
    """Make sure that a file of a kind can be written at a path that is none of `others`; nothing there is touched.

    A file that is there is written over only if it is of the same kind, which its first bytes tell: another one is
    somebody's weights, settings or prompts.

    Raises InputError: It cannot: no such folder, a folder in its place, a device, a name that is too long, a file of
    another kind.
    """
    check_output(path, others, name, "a file of its own")
    try:
        with path.open("rb") as file:
            head = file.read(256)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(str(path), reason(error), "a file that can be written") from error
    if head and kind not in head:
        raise InputError(str(path), "a file of another kind", "a new file, or an older one of this kind")


def make_folder(folder: Path) -> list[str]:
    """Make a folder, if it is not there, make sure that it can be written into, and return what it holds.

    Raises InputError: It cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder that can be made and written") from error
    check_writable(folder)
    return there
