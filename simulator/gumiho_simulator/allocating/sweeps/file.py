"""The Parquet file of a sweep: one row a forecast."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from gumiho_theory import InputError
from gumiho_theory.files import reason, write_atomically

SCHEMA = "gumiho.sweep/1"
TEXTS = ("model", "model_sha256", "profile", "profile_sha256", "acceptance", "structure", "note", "convention")
NUMBERS = ("tau", "lo", "hi", "speedup", "speedup_lo", "speedup_hi")
COLUMNS = (*TEXTS, *NUMBERS, "supported")
"""Files and their hashes, the acceptance model's name, the structure; tau (bonus included, micro) and speed-up over
plain decoding with 95 % limits."""


def _schema() -> Any:
    import pyarrow as pa

    fields = [(name, pa.string()) for name in TEXTS] + [(name, pa.float64()) for name in NUMBERS]
    return pa.schema([*fields, ("supported", pa.bool_())], metadata={"gumiho": SCHEMA})


def write_rows(path: str | os.PathLike[str], rows: Sequence[dict[str, Any]]) -> None:
    """Write rows, whole or not at all.

    `path`: File to write. `rows`: Keys beyond `COLUMNS` are left out, missing ones are null. Raises InputError: The
    file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema()
    columns = {name: [row.get(name) for row in rows] for name in schema.names}
    table = pa.table(columns, schema=schema)
    write_atomically(path, lambda file: pq.write_table(table, file))


def read_rows(path: str | os.PathLike[str], most: int) -> list[dict[str, Any]]:
    """Read what `write_rows` wrote.

    `most`: Rows that it may hold. Returns one dict a row, nulls as None. Raises InputError: No such file, another kind
    of file, or more rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if (schema.metadata or {}).get(b"gumiho") != SCHEMA.encode() or not schema.equals(_schema()):
                raise InputError(path, "another kind of Parquet file", f"a sweep's, schema {SCHEMA}")
            if file.metadata.num_rows > most:
                raise InputError(path, f"{file.metadata.num_rows} rows", f"at most {most}")
            rows: list[dict[str, Any]] = file.read().to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise InputError(path, reason(error), "a readable Parquet file") from error
    return rows
