"""fvecs, bvecs and ivecs: records of an int32 dimension d and d values, little-endian."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from rag_assets.sources.faults import refuse
from rag_assets.sources.strict_json import WHOLE_FILE

_VALUES: dict[str, np.dtype[Any]] = {
    ".fvecs": np.dtype("<f4"),
    ".ivecs": np.dtype("<i4"),
    ".bvecs": np.dtype("u1"),
}


def read_vecs(path: Path, shown: str | None = None) -> np.ndarray:
    """`float32[n, d]` (.fvecs), `int32[n, d]` (.ivecs) or `uint8[n, d]` (.bvecs), memory-mapped.

    Raises InputError for another suffix, a file that is not whole records, or records that differ
    in d.
    """
    name = shown or os.fspath(path)
    if path.suffix not in _VALUES:
        refuse("unknown_format", name, WHOLE_FILE, path.suffix, f"one of {', '.join(_VALUES)}")
    value = _VALUES[path.suffix]
    if not path.is_file():
        refuse("file_not_found", name, WHOLE_FILE, "no such file", "name an existing file")
    size = path.stat().st_size
    with open(path, "rb") as stream:
        head = stream.read(4)
    dimension = int.from_bytes(head, "little", signed=True) if len(head) == 4 else 0
    record = 4 + dimension * value.itemsize
    if dimension < 1 or size % record:
        found = f"{size} bytes, dimension {dimension} in the first record"
        remedy = "whole records of an int32 dimension and as many values"
        refuse("not_whole_records", name, WHOLE_FILE, found, remedy)
    layout = np.dtype([("d", "<i4"), ("values", value, (dimension,))])
    records = np.memmap(path, layout, "r")
    others = np.flatnonzero(records["d"] != dimension)
    if len(others):
        found = f"dimension {records['d'][others[0]]}"
        remedy = f"every record has {dimension}, as the first has"
        refuse("wrong_dimension", name, f"record {others[0]}", found, remedy)
    values: np.ndarray = records["values"]
    return values
