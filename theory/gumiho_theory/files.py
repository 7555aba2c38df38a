"""Reading JSON within bounds and writing files so that a failure leaves the old file whole."""

from __future__ import annotations

import json
import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from gumiho_theory.errors import InputError

PathLike = str | os.PathLike[str]

MAX_JSON_BYTES = 64 * 2**20
_WRITABLE = "a file that can be written in an existing folder"


def reason(error: BaseException) -> str:
    """Return why an operating-system call failed, without the path that the message already names."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def write_atomically(path: PathLike, write: Callable[[BinaryIO], object]) -> None:
    """Write a file through a temporary file in the same folder, then rename it into place.

    `path`: The file to write. Its folder must exist. `write`: Called with the open binary file. Raises InputError: When
    the file cannot be written; a file that stood there is left as it was.
    """
    try:
        # Through a link to the file that it names: the link itself stays.
        target = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
        if target.exists() and not target.is_file():
            raise InputError(path, "a folder or a device", "a file that can be written")
        temporary = target.parent / f".gumiho-{uuid.uuid4().hex}.tmp"
        try:
            with open(temporary, "xb") as file:
                write(file)
                file.flush()
                # Renaming before the bytes are on disk could leave an empty file after a power cut.
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(path, reason(error), _WRITABLE) from error
    except ValueError as error:
        if isinstance(error, InputError) or "\0" not in str(path):
            raise
        raise InputError(repr(path), "a null character", "a usable file name") from error


def check_output(
    output: PathLike,
    inputs: Iterable[PathLike],
    option: str = "--output",
    wanted: str = "a file that is not one of the inputs",
) -> None:
    """Refuse, before any work, a file that cannot be written or that is read; what is there stays.

    `output`: What is to be written. `inputs`: What is read; those that do not exist are for the reader to name.
    `option`, `wanted`: What an error about `inputs` names and wants. Raises InputError: Its folder is not there or
    cannot be written to, it is a folder or a device, or one of the inputs.
    """
    try:
        target = Path(os.path.realpath(output))
        if target.is_symlink():
            raise InputError(output, "a link that leads nowhere", _WRITABLE)
        if not target.parent.is_dir():
            raise InputError(output, f"no folder {target.parent.name!r}", _WRITABLE)
        # Through /proc a pipe has a name that leads to nothing.
        if os.path.exists(output) and not target.is_file():
            raise InputError(output, "a folder or a device", "a file that can be written")
        check_writable(target.parent)
        if any(os.path.realpath(path) == str(target) or _same(path, target) for path in inputs):
            raise InputError(option, str(output), wanted)
    except OSError as error:
        raise InputError(output, reason(error), _WRITABLE) from error


def check_writable(folder: PathLike) -> None:
    """Make sure that a file can be written into a folder: one comes and goes.

    Raises InputError: It cannot.
    """
    import tempfile

    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder that can be written") from error


def _same(path: PathLike, target: Path) -> bool:
    return target.exists() and os.path.exists(path) and os.path.samefile(path, target)


def write_json(path: PathLike, value: Mapping[str, Any]) -> None:
    """Write one JSON object atomically (UTF-8, indented, no NaN or infinity).

    Raises InputError: When the value is not finite JSON or the file cannot be written.
    """
    text = dumps_json(str(path), value, indent=2) + "\n"
    write_atomically(path, lambda file: file.write(text.encode("utf-8")))


def dumps_json(place: str, value: Mapping[str, Any], indent: int | None = None) -> str:
    """Return `value` as JSON text; values that JSON has no form for raise InputError naming `place`."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(place, error, "values that JSON can hold (finite numbers)") from error


def read_json(path: PathLike, max_bytes: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """Read one JSON object from a file of at most `max_bytes` bytes.

    Raises InputError: When the file cannot be read, is too large, is not UTF-8 JSON or is not an object.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise InputError(path, reason(error), "a readable JSON file") from error
    except ValueError as error:
        raise InputError(repr(path), "a null character", "a usable file name") from error
    if len(data) > max_bytes:
        raise InputError(path, f"more than {max_bytes} bytes", f"a JSON file of at most {max_bytes} bytes")
    return loads_json(str(path), data)


def loads_json(place: str, data: bytes | str) -> dict[str, Any]:
    """Parse one JSON object, refusing NaN and infinity; InputError names `place`."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(place, f"no JSON ({error})", "one JSON object") from error
    if not isinstance(value, dict):
        raise InputError(place, f"a JSON {type(value).__name__}", "one JSON object")
    return value


def check_schema(found: object, name: str, major: int) -> None:
    """Accept ``name/major`` and its additive minors (``name/major.minor``), refuse anything else."""
    match = re.fullmatch(r"([\w.]+)/(\d{1,6})(\.\d{1,6})?", found) if isinstance(found, str) else None
    if match is None or match[1] != name or int(match[2]) != major:
        newer = match is not None and match[1] == name and int(match[2]) > major
        raise InputError(
            "schema",
            "nothing" if found is None else repr(found),
            f"{name}/{major}" + (" (written by a newer version of this toolkit)" if newer else ""),
        )


class JsonFile(ABC):
    """Base of what is kept as one JSON object a file: a subclass says its JSON, this reads and writes it."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the object as JSON values, its schema among them."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read what `to_json` returned; InputError names the field."""

    @classmethod
    def read(cls, path: PathLike) -> Self:
        """Read a file; InputError names it and the field."""
        data = read_json(path)
        try:
            return cls.from_json(data)
        except InputError as error:
            raise error.within(path) from None

    def write(self, path: PathLike) -> None:
        """Write a file, atomically; InputError when that fails."""
        write_json(path, self.to_json())
