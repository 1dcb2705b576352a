"""The corpus: canonical items, what each space holds of them, query cases and judgements.

Everything is columnar (Arrow) and numbered: `item_no` is the item's position in ascending order of
`item_id` (code points), so that ordering by number is ordering by id; `case_no` and `space_no` are
positions in file order. The tables people read join the ids in; see dbt_like_sql/.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import SpaceContract, canonical_json

_strings = pa.list_(pa.string())

ITEMS = pa.schema(
    [
        ("item_no", pa.int32()),
        ("item_id", pa.string()),
        ("role", pa.string()),
        ("text", pa.string()),
        ("acl", _strings),  # sorted, distinct
        ("source_revision", pa.string()),
        ("content_sha256", pa.string()),
    ]
)
# One row per item of each space. Rows of a space stand together, in order of `space_no`;
# within a space documents come first, then query items, each by `item_no`.
SPACE_ITEMS = pa.schema(
    [
        ("space_no", pa.int16()),
        ("item_no", pa.int32()),
        ("item_id", pa.string()),
        ("role", pa.string()),
        ("acl", _strings),
        ("source_revision", pa.string()),
        ("content_sha256", pa.string()),
    ]
)
CASES = pa.schema(
    [
        ("case_no", pa.int32()),
        ("case_id", pa.string()),
        ("query_item_no", pa.int32()),
        ("query_item_id", pa.string()),
        ("subject_groups", _strings),  # sorted, distinct
        ("subgroups", _strings),
        ("split", pa.string()),  # NULL where the source has no splits
    ]
)
QRELS = pa.schema([("case_no", pa.int32()), ("item_no", pa.int32()), ("grade", pa.int8())])
# One row per returned document; rank counts from 1. See rag_assets.indexes for the order.
RESULTS = pa.schema(
    [
        ("case_no", pa.int32()),
        ("rank", pa.int16()),
        ("item_no", pa.int32()),
        ("score", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Corpus:
    """A validated source. `space_no` is the position of a contract in `contracts`.

    `items` is canonical: where spaces disagree about an item, the row of the first declared space
    that holds it. `vectors[space_id]` is `dtype[n_space_items, dimension]`, in the row order of
    that space's rows in `space_items`; it holds only the vectors that the source itself declares.
    """

    contracts: tuple[SpaceContract, ...]
    items: pa.Table
    space_items: pa.Table
    cases: pa.Table
    qrels: pa.Table
    vectors: Mapping[str, np.ndarray]

    def space_no(self, space_id: str) -> int:
        """Position of a space. Raises KeyError for an unknown one."""
        for number, contract in enumerate(self.contracts):
            if contract.space_id == space_id:
                return number
        raise KeyError(space_id)

    def contract(self, space_id: str) -> SpaceContract:
        return self.contracts[self.space_no(space_id)]

    def items_of(self, space_id: str) -> pa.Table:
        """The rows of `space_items` that belong to one space, in order."""
        numbers = self.space_items["space_no"].to_numpy()
        rows = np.flatnonzero(numbers == self.space_no(space_id))
        if rows.size == 0:
            return self.space_items.slice(0, 0)
        return self.space_items.slice(int(rows[0]), int(rows.size))


def digest_table(table: pa.Table) -> str:
    """SHA-256 (hex) over a table's values: equal content gives equal digests, however chunked."""
    sha = hashlib.sha256(canonical_json(table.column_names).encode())
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            sha.update(canonical_json(list(row.values())).encode("utf-8"))
            sha.update(b"\n")
    return sha.hexdigest()


def digest_array(array: np.ndarray) -> str:
    """SHA-256 (hex) over dtype, shape and the little-endian bytes of an array."""
    sha = hashlib.sha256(f"{array.dtype.name}{array.shape}".encode())
    for start in range(0, len(array), 65_536):
        block = np.ascontiguousarray(array[start : start + 65_536])
        sha.update(block.astype(block.dtype.newbyteorder("<"), copy=False).tobytes())
    return sha.hexdigest()


def digest(*parts: str) -> str:
    """SHA-256 (hex) over a sequence of strings."""
    return hashlib.sha256(canonical_json(parts).encode("utf-8")).hexdigest()
