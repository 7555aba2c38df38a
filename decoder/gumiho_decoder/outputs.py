"""Places to write, checked before hours of work."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gumiho_theory import InputError
from gumiho_theory.files import reason


def check_output(path: Path) -> None:
    """Make sure that a file can be written at a path; nothing there is touched.

    Raises
    ------
    InputError
        It cannot: no such folder, a folder in its place, a device, a name that is too long.
    """
    check_writable(path.parent)
    try:
        if path.is_file():
            return
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        path.unlink()
    except OSError as error:
        raise InputError(str(path), reason(error), "a file that can be written") from error


def check_writable(folder: Path) -> None:
    """Make sure that a file can be written into a folder.

    Raises
    ------
    InputError
        It cannot.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder that can be written") from error
