"""Reading and writing the row files as Parquet: bounded, typed, atomic. The only user of pyarrow here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gumiho_theory.errors import InputError
from gumiho_theory.files import PathLike, dumps_json, loads_json, reason, write_atomically
from gumiho_theory.logs.schema import MAX_ROWS, Column, RowSchema
from gumiho_theory.types import AnyArray, BoolArray, IntArray

METADATA_KEY = b"gumiho"
_MAX_METADATA = 16 * 2**20
_BATCH_ROWS = 65_536


def _holds(column: Column, found: Any) -> bool:
    """Whether an Arrow type can hold the column: its values, or lists (of lists, in a table) of them."""
    levels = 2 if column.is_table else int(column.per_depth or column.per_structure)
    types = pa.types
    for _ in range(levels):
        if types.is_null(found):
            return True
        if not (types.is_list(found) or types.is_large_list(found) or types.is_fixed_size_list(found)):
            return False
        found = found.value_type
    if column.type == "string" and types.is_dictionary(found):
        found = found.value_type
    checks = {"string": (types.is_string, types.is_large_string), "int": (types.is_integer,)}
    return any(check(found) for check in (types.is_null, *checks.get(column.type, (types.is_floating,))))


def read_table(
    path: PathLike, schema: RowSchema, widths: Callable[[Mapping[str, Any]], tuple[int, int]]
) -> tuple[dict[str, AnyArray], dict[str, Any], tuple[str, ...]]:
    """Read the columns of `schema`.

    `widths`: Gives, from the provenance, k of the table columns and the number of structures. Returns arrays, dict of
    array: In-memory form, padded to the deepest draft. Returns missing, tuple of str: Optional columns that the file
    lacks. Raises InputError: Names the file and, where there is one, the row and column.
    """
    try:
        with open(path, "rb") as source:
            with pq.ParquetFile(source) as file:
                provenance, texts = _check_header(file, schema)
                k, structures = widths(provenance)
                drafted = _read_drafted(file, schema)
            # Before any other column is decoded: what the rows say of their depths must fit in memory.
            arrays = schema.nulls(drafted, k, structures)
            source.seek(0)
            # Dictionary reading keeps a text that stands on every row from being copied to every row.
            with pq.ParquetFile(source, read_dictionary=texts, page_checksum_verification=True) as file:
                missing = _read_columns(file, schema, arrays, drafted, structures)
        return arrays, provenance, missing
    except InputError as error:
        raise error.within(path) from None
    except (OSError, pa.ArrowException, ValueError, MemoryError) as error:
        raise InputError(path, reason(error), "a readable Parquet file") from error


def _check_header(file: Any, schema: RowSchema) -> tuple[dict[str, Any], list[str]]:
    """Check all that can be checked before any data are decoded; return provenance and text columns."""
    arrow = file.schema_arrow
    metadata = (arrow.metadata or {}).get(METADATA_KEY)
    if metadata is None:
        raise InputError("file metadata", "no key 'gumiho'", f"provenance with schema {schema.tag}")
    if len(metadata) > _MAX_METADATA:
        raise InputError("file metadata", f"{len(metadata)} bytes", f"at most {_MAX_METADATA} bytes")
    provenance = loads_json("file metadata", metadata)
    schema.check(provenance.get("schema"))
    if file.metadata.num_rows > MAX_ROWS:
        raise InputError("rows", file.metadata.num_rows, f"at most {MAX_ROWS}")
    texts = []
    for column in schema.columns:
        if arrow.names.count(column.name) > 1:
            raise InputError(f"column {column.name}", "two columns of that name", "one")
        if column.name not in arrow.names:
            if column.required:
                raise InputError(f"column {column.name}", "no such column", column.description)
            continue
        found = arrow.field(column.name).type
        if not _holds(column, found):
            raise InputError(f"column {column.name}", found, f"{column.kind} values")
        if column.type == "string" and not pa.types.is_null(found):
            texts.append(column.name)
    return provenance, texts


def _batches(file: Any, columns: list[str]) -> Iterator[tuple[int, Any]]:
    """Yield (first row, record batch); a file that unpacks to far more than it says fails early."""
    start = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
        # Damaged pages can decode into indices and text that are no such thing; what follows trusts them.
        batch.validate(full=True)
        yield start, batch
        start += batch.num_rows


def _read_drafted(file: Any, schema: RowSchema) -> IntArray:
    column = schema.column("drafted")
    parts = [_scalars(batch.column(0), column, start) for start, batch in _batches(file, ["drafted"])]
    drafted: IntArray = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
    return drafted


def _read_columns(
    file: Any, schema: RowSchema, arrays: dict[str, AnyArray], drafted: IntArray, structures: int
) -> tuple[str, ...]:
    """Fill `arrays` from the file; return the columns that it lacks."""
    names = set(file.schema_arrow.names)
    present = [column for column in schema.columns if column.name in names]
    rows = 0
    for start, batch in _batches(file, [column.name for column in present]):
        rows = start + batch.num_rows
        if rows > len(drafted):
            break
        for column in present:
            values = batch.column(batch.schema.get_field_index(column.name))
            if column.per_depth or column.per_structure:
                lengths = drafted[start:rows] if column.per_depth else np.full(rows - start, structures)
                _fill_lists(arrays[column.name][start:rows], values, column, lengths, start)
            else:
                arrays[column.name][start:rows] = _scalars(values, column, start)
    if rows != len(drafted):
        raise InputError("columns", "different numbers of rows", f"{len(drafted)} rows in each")
    return tuple(column.name for column in schema.columns if column.name not in names)


def _valid(array: Any) -> BoolArray:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def _scalars(array: Any, column: Column, start: int) -> AnyArray:
    """Return the in-memory form of a column that has one value a row."""
    if column.required and array.null_count:
        row = start + int((~_valid(array)).argmax())
        raise InputError(f"row {row}, column {column.name}", "null", column.description)
    if column.type == "string":
        return _texts(array)
    return _numbers(array, column, np.arange(start, start + len(array)))


def _texts(array: Any) -> AnyArray:
    if not pa.types.is_dictionary(array.type):
        return np.array(array.to_pylist(), dtype=object)
    words = np.array([*array.dictionary.to_pylist(), None], dtype=object)
    codes = array.indices.cast(pa.int64()).fill_null(len(words) - 1)
    texts: AnyArray = words[codes.to_numpy(zero_copy_only=False)]
    return texts


def _numbers(array: Any, column: Column, rows: IntArray) -> AnyArray:
    """Return numbers with the column's stand-in for null; `rows` gives the file's row of each."""
    integer = column.type == "int"
    try:
        wide = array.cast(pa.int64() if integer else pa.float64())
    except pa.ArrowInvalid as error:
        raise InputError(f"column {column.name}", error, "64-bit integers") from None
    filled = wide.fill_null(column.null if integer else float("nan"))
    values: AnyArray = np.array(filled.to_numpy(zero_copy_only=False))
    # A number in the file must not pass for the null that it stands for in memory.
    posing = _valid(array) & column.is_null(values) if integer and not column.required else None
    if posing is not None and posing.any():
        row = rows[int(posing.argmax())]
        raise InputError(f"row {row}, column {column.name}", column.null, f"{column.description}, or null")
    return values


def _fill_lists(out: AnyArray, lists: Any, column: Column, wanted: IntArray, start: int) -> None:
    """Fill [n, D] (or [n, D, k], [n, S]) from lists of `wanted` entries; a null list is null throughout."""
    if pa.types.is_null(lists.type):
        return
    given = _valid(lists)
    what = "as drafted" if column.per_depth else "one a structure"
    _check_lengths(lists, given, wanted, column, np.arange(start, start + len(wanted)), what)
    rows, depths = np.nonzero(given[:, None] & (np.arange(out.shape[1]) < wanted[:, None]))
    entries = lists.flatten()
    places: tuple[IntArray, ...] = (rows, depths)
    if column.is_table and not pa.types.is_null(entries.type):
        k = out.shape[2]
        inner = _valid(entries)
        _check_lengths(entries, inner, np.full(len(entries), k), column, start + rows, "top_k")
        count = int(inner.sum())
        places = (np.repeat(rows[inner], k), np.repeat(depths[inner], k), np.tile(np.arange(k), count))
        entries = entries.flatten()
    if not pa.types.is_null(entries.type):
        out[places] = _numbers(entries, column, start + places[0])


def _check_lengths(lists: Any, given: BoolArray, wanted: IntArray, column: Column, rows: IntArray, what: str) -> None:
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    wrong = given & (lengths != wanted)
    if wrong.any():
        at = int(wrong.argmax())
        place = f"row {rows[at]}, column {column.name}"
        raise InputError(place, f"a list of {lengths[at]}", f"a list of {wanted[at]} ({what})")


def write_table(
    path: PathLike, schema: RowSchema, data: object, provenance: Mapping[str, Any], missing: tuple[str, ...]
) -> None:
    """Write the arrays that `data` holds under the schema's column names; columns in `missing` are left out.

    Raises InputError: When the provenance is not JSON or the file cannot be written.
    """
    drafted: IntArray = np.asarray(data.drafted)  # type: ignore[attr-defined]
    metadata = {METADATA_KEY: dumps_json("provenance", provenance).encode("utf-8")}
    fields, arrays = [], []
    for column in schema.columns:
        if column.name in missing:
            continue
        array = _arrow(getattr(data, column.name), column, drafted)
        note = {b"description": column.description.encode(), b"unit": column.unit.encode()}
        fields.append(pa.field(column.name, array.type, nullable=not column.required, metadata=note))
        arrays.append(array)
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=metadata))
    write_atomically(path, lambda file: pq.write_table(table, file, compression="zstd", write_page_checksum=True))


def _arrow(values: AnyArray, column: Column, drafted: IntArray) -> Any:
    if column.type == "string":
        return pa.array(values, type=pa.string())
    if not column.per_depth and not column.per_structure:
        return _arrow_numbers(values, column)
    lengths = drafted if column.per_depth else np.full(len(values), values.shape[1])
    inside = np.arange(values.shape[1]) < lengths[:, None]
    flat = _arrow_numbers(values[inside].reshape(-1), column)
    if column.is_table:
        k = values.shape[2]
        starts = np.arange(int(inside.sum()) + 1, dtype=np.int32) * k
        flat = pa.ListArray.from_arrays(pa.array(starts, type=pa.int32()), flat)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, type=pa.int32()), flat)


def _arrow_numbers(values: AnyArray, column: Column) -> Any:
    if column.type == "float":
        return pa.array(values, type=pa.float64(), mask=column.is_null(values))
    return pa.array(values, type=pa.int64(), mask=None if column.required else column.is_null(values))
