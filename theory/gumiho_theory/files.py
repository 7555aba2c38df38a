"""Files: JSON read within bounds, schema tags, and writing so that a failure leaves the old file whole."""

from __future__ import annotations

import json
import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

from gumiho_theory.errors import InputError, within

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


@dataclass(frozen=True)
class Schema:
    """Name and major version of a kind of file: ``name/major`` in the files themselves."""

    name: str
    major: int

    @property
    def tag(self) -> str:
        """The schema's text in a file, such as ``gumiho.trace/1``."""
        return f"{self.name}/{self.major}"

    def check(self, found: object) -> None:
        """Accept the tag and its additive minors (``name/major.minor``); InputError for anything else."""
        match = re.fullmatch(r"([\w.]+)/(\d{1,6})(\.\d{1,6})?", found) if isinstance(found, str) else None
        if match is None or match[1] != self.name or int(match[2]) != self.major:
            newer = match is not None and match[1] == self.name and int(match[2]) > self.major
            wanted = self.tag + (" (written by a newer version of this toolkit)" if newer else "")
            raise InputError("schema", "nothing" if found is None else repr(found), wanted)


def given_fields(kind: type, data: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """Return what `data` holds of a dataclass's fields; InputError, at `place` and its name, for one that lacks."""
    for field in fields(kind):
        if field.name not in data and field.default is MISSING:
            raise InputError(f"{place}{field.name}", "no such key", "a value")
    return {field.name: data[field.name] for field in fields(kind) if field.name in data}


class JsonFile(ABC):
    """A value that is kept as one JSON object with its schema's tag."""

    schema: ClassVar[Schema]

    @abstractmethod
    def _to_values(self) -> dict[str, Any]:
        """Return the JSON values without the tag."""

    @classmethod
    @abstractmethod
    def _from_values(cls, data: Mapping[str, Any]) -> Self:
        """Build the value from an object whose tag has been checked; unknown keys are ignored."""

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON values, its schema's tag first."""
        return {"schema": self.schema.tag, **self._to_values()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` returned; unknown keys are ignored, optional ones may be missing.

        Raises InputError: For another schema, a missing key, or a bad value; names the field.
        """
        cls.schema.check(data.get("schema"))
        return cls._from_values(data)

    @classmethod
    def read(cls, path: PathLike) -> Self:
        """Read the value from a JSON file; InputError names the file and the field."""
        data = read_json(path)
        with within(path):
            return cls.from_json(data)

    def write(self, path: PathLike) -> None:
        """Write the value to a JSON file, atomically; InputError when that fails."""
        write_json(path, self.to_json())
