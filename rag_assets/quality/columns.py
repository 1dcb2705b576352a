"""Scalar columns derived from Arrow columns of text and of lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def outer_whitespace(texts: pa.ChunkedArray) -> np.ndarray:
    """int64[n]: characters of leading and trailing whitespace; nulls count as 0."""
    trimmed = pc.utf8_length(pc.utf8_trim_whitespace(texts))
    return integers(pc.subtract(pc.utf8_length(texts), trimmed), missing=0)


def trimmed_length(texts: pa.ChunkedArray) -> np.ndarray:
    """int64[n]: characters without outer whitespace; 0 for a null."""
    return integers(pc.utf8_length(pc.utf8_trim_whitespace(texts)), missing=0)


def list_lengths(lists: pa.ChunkedArray) -> np.ndarray:
    """int64[n]: entries of each list; 0 for a null."""
    return integers(pc.list_value_length(lists), missing=0)


def list_repeats(lists: pa.ChunkedArray) -> np.ndarray:
    """int64[n]: how many entries of each list repeat an earlier one."""
    lengths = list_lengths(lists)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    codes, count = _token_codes(lists)
    distinct_rows = np.unique(rows * (count + 1) + codes) // (count + 1)
    repeats: np.ndarray = lengths - np.bincount(distinct_rows, minlength=len(lengths))
    return repeats


def integers(column: pa.ChunkedArray, missing: int = -1) -> np.ndarray:
    """int64[n], with `missing` for nulls."""
    values: np.ndarray = pc.fill_null(column, missing).to_numpy().astype(np.int64)
    return values


def row_of_number(numbers: np.ndarray, count: int) -> np.ndarray:
    """int64[count + 1]: the row that holds each number 0..count-1, else -1 (so is entry -1)."""
    rows = np.full(count + 1, -1)
    known = np.flatnonzero((numbers >= 0) & (numbers < count))
    rows[numbers[known]] = known
    return rows


def rows_at(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """int64[n]: look `numbers` up in what `row_of_number` gave; -1 for those out of range."""
    count = len(rows) - 1
    found: np.ndarray = rows[np.where((numbers >= 0) & (numbers < count), numbers, count)]
    return found


def taken(column: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """`column` at `rows`, null where a row is -1."""
    return column.take(pa.array(rows, mask=rows < 0))


def labels(ids: pa.ChunkedArray) -> Callable[[int], str]:
    """The id at a position, or the position where the id is null."""

    def label(position: int) -> str:
        value = ids[position].as_py()
        return f"row {position}" if value is None else str(value)

    return label


def _token_codes(lists: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """int64[n_entries] numbering the distinct tokens of all lists, and how many there are."""
    encoded = pc.dictionary_encode(lists.combine_chunks().flatten())
    return integers(encoded.indices, missing=len(encoded.dictionary)), len(encoded.dictionary)
