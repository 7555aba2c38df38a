"""Invented logs, written to a file and read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumiho_simulator.importers import Reading, read

ReadText = Callable[..., Reading]


@pytest.fixture
def read_text(tmp_path: Path) -> ReadText:
    """Return a function that reads text, or JSON lines of the objects given, as a log."""

    def reader(*lines: str | dict[str, Any] | list[Any], form: str = "auto") -> Reading:
        path = tmp_path / "log"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return read(path, form)

    return reader
