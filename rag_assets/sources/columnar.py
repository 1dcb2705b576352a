"""Parquet and Arrow tables: batches of rows, and a column of vectors.

An Arrow file is an IPC file or stream (Feather version 2 is one). A column of vectors is a list,
large list or fixed-size list of floats; DuckDB's FLOAT[n] arrives as one of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rag_assets.sources.faults import refuse
from rag_assets.sources.records import ID_FIELDS, Record
from rag_assets.sources.strict_json import WHOLE_FILE, excerpt
from rag_assets.sources.vector_files import NamedVectors

TABLE_SUFFIXES = (".parquet", ".arrow", ".feather")
_BATCH_ROWS = 8_192


def table_schema(path: Path, shown: str) -> pa.Schema:
    """The columns of a table. Raises InputError for a file that is none."""
    try:
        if path.suffix == ".parquet":
            return pq.read_schema(path)
        with pa.memory_map(str(path)) as stream:
            return _ipc(stream).schema
    except (OSError, pa.ArrowInvalid) as error:
        refuse("unreadable_file", shown, WHOLE_FILE, excerpt(str(error)), "a readable table")


def table_batches(
    path: Path, shown: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a table in batches, all columns or some. Raises InputError."""
    try:
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as table:
                yield from table.iter_batches(_BATCH_ROWS, columns=columns)
        else:
            with pa.memory_map(str(path)) as stream:
                reader = _ipc(stream)
                batches = (
                    (reader.get_batch(number) for number in range(reader.num_record_batches))
                    if isinstance(reader, pa.ipc.RecordBatchFileReader)
                    else reader
                )
                for batch in batches:
                    yield batch if columns is None else batch.select(columns)
    except (OSError, pa.ArrowInvalid) as error:
        refuse("unreadable_file", shown, WHOLE_FILE, excerpt(str(error)), "a readable table")


def row_records(paths: Sequence[Path], shown: str, columns: Sequence[str]) -> Iterator[Record]:
    """Rows of some columns as records, numbered from 1 through all files."""
    place = 0
    for path in paths:
        for batch in table_batches(path, shown, columns):
            for row in batch.to_pylist():
                place += 1
                yield Record(place, row)


def id_column(schema: pa.Schema, shown: str) -> str:
    """The name of a table's id column, which must hold text. Raises InputError."""
    name = next((name for name in ID_FIELDS if name in schema.names), None)
    if name is None:
        remedy = f"a column {' or '.join(ID_FIELDS)} is needed"
        found = f"the columns {', '.join(schema.names)}"
        refuse("missing_field", shown, WHOLE_FILE, found, remedy)
    require_text(schema, name, shown)
    return name


def require_text(schema: pa.Schema, name: str, shown: str) -> None:
    """Raises InputError unless a column of ids is there and holds text: nothing is cast."""
    if schema.get_field_index(name) < 0:
        found = f"the columns {', '.join(schema.names)}"
        refuse("missing_field", shown, WHOLE_FILE, found, f"one column {name} is needed")
    held = schema.field(name).type
    value = held.value_type if pa.types.is_dictionary(held) else held
    if not (
        pa.types.is_string(value)
        or pa.types.is_large_string(value)
        or pa.types.is_string_view(value)
    ):
        remedy = "ids are text; nothing is cast"
        refuse("id_not_text", shown, f"column {name}", str(held), remedy)


def is_vector_type(held: pa.DataType) -> bool:
    """A list of floats, of any length."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_list(held) for is_list in lists) and pa.types.is_floating(held.value_type)


def read_vector_column(paths: Sequence[Path], shown: str, column: str) -> NamedVectors:
    """The vectors of a column, `dtype[n, d]` of the column's own dtype, with the rows' ids.

    Raises InputError for a column that is not one of vectors, rows without a vector or a component,
    and rows of different length.
    """
    first = table_schema(paths[0], shown)
    identifier = id_column(first, shown)
    at = first.get_field_index(column)
    if at < 0 or not is_vector_type(first.field(at).type):
        found = f"{first.field(at).type}" if at >= 0 else f"the columns {', '.join(first.names)}"
        remedy = "a list, large list or fixed-size list of floats is needed"
        refuse("wrong_type", shown, f"column {column}", found, remedy)
    dtype = first.field(at).type.value_type.to_pandas_dtype()
    matrix = np.empty((0, 0), dtype)
    ids: list[pa.Array] = []
    row = 0
    total = sum(_row_count(path, shown) for path in paths)
    for path in paths:
        for batch in table_batches(path, shown, [identifier, column]):
            names = batch.column(identifier).cast(pa.string())
            block = _matrix(batch.column(column), names, row, shown, column)
            if not row:
                matrix = np.empty((total, block.shape[1]), dtype)
            if block.shape[1] != matrix.shape[1]:
                found = f"{block.shape[1]} components"
                remedy = f"every vector has {matrix.shape[1]}, as the first has"
                refuse("wrong_dimension", shown, f"row {row + 1}, {column}", found, remedy)
            matrix[row : row + len(block)] = block
            ids.append(names)
            row += len(block)
    return NamedVectors(pa.chunked_array(ids, pa.string()).combine_chunks(), matrix, shown)


def _matrix(vectors: pa.Array, names: pa.Array, before: int, shown: str, column: str) -> np.ndarray:
    if vectors.null_count:
        row = int(np.flatnonzero(vectors.is_null().to_numpy(zero_copy_only=False))[0])
        place = f"row {before + row + 1} ({excerpt(names[row].as_py())}), {column}"
        refuse("missing_vector", shown, place, "no vector", "every row holds a vector")
    if pa.types.is_fixed_size_list(vectors.type):
        lengths = np.full(len(vectors), vectors.type.list_size)
    else:
        lengths = np.diff(vectors.offsets.to_numpy())
    odd = np.flatnonzero(lengths != lengths[0])
    if len(odd):
        row = int(odd[0])
        place = f"row {before + row + 1} ({excerpt(names[row].as_py())}), {column}"
        remedy = f"every vector has {lengths[0]}, as those before it"
        refuse("wrong_dimension", shown, place, f"{lengths[row]} components", remedy)
    flat = vectors.flatten()
    if flat.null_count:
        row = int(np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))[0] // lengths[0])
        place = f"row {before + row + 1} ({excerpt(names[row].as_py())}), {column}"
        refuse("not_finite", shown, place, "a null component", "components are finite numbers")
    matrix: np.ndarray = flat.to_numpy().reshape(len(vectors), int(lengths[0]))
    return matrix


def _row_count(path: Path, shown: str) -> int:
    if path.suffix == ".parquet":
        return int(pq.read_metadata(path).num_rows)
    return sum(len(batch) for batch in table_batches(path, shown))


def _ipc(stream: pa.NativeFile) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    head = stream.read(6)
    stream.seek(0)
    return pa.ipc.open_file(stream) if head == b"ARROW1" else pa.ipc.open_stream(stream)
