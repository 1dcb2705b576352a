"""Who may see which document.

A subject with groups G may see a document whose access list shares a group with G, and needs that
twice: from the canonical item and from the space's own row of it. Where the two disagree the
narrower counts; an item without a canonical row, or without a list, is seen by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.embeddings.space import EmbeddedSpace

AccessList = frozenset[str]


@dataclass(frozen=True)
class DocumentAccess:
    """Access to the documents of one space.

    `pairs`: the distinct (canonical list, space's list) that occur; `pair_no: int32[n_documents]`
    numbers each document's, -1 where nobody may see it.
    """

    pairs: tuple[tuple[AccessList, AccessList], ...]
    pair_no: np.ndarray

    def allowed_pairs(self, groups: Iterable[str]) -> np.ndarray:
        """bool[n_pairs]: the pairs that admit a subject with these groups."""
        held = frozenset(groups)
        return np.array([bool(held & one) and bool(held & two) for one, two in self.pairs], bool)

    def rows(self, allowed_pairs: np.ndarray) -> np.ndarray:
        """int64[n_eligible], ascending: the documents with an allowed pair."""
        return np.flatnonzero(np.append(allowed_pairs, False)[self.pair_no])


def document_access(space: EmbeddedSpace, items: pa.Table) -> DocumentAccess:
    """Number the access lists of a space's documents. `items` follows ITEMS."""
    item_no = space.document_item_no
    canonical_no, canonical = number_lists(items["acl"])
    own_no, own = number_lists(space.items["acl"].slice(0, len(item_no)))

    canonical_item_no = items["item_no"].to_numpy()
    largest = max(item_no.max(initial=-1), canonical_item_no.max(initial=-1))
    canonical_of = np.full(largest + 1, -1, dtype=np.int64)
    canonical_of[canonical_item_no] = canonical_no
    canonical_no = canonical_of[item_no]

    combined = np.where((canonical_no < 0) | (own_no < 0), -1, canonical_no * len(own) + own_no)
    codes, inverse = np.unique(combined, return_inverse=True)
    hidden = int(len(codes) > 0 and codes[0] < 0)
    pairs = tuple((canonical[code // len(own)], own[code % len(own)]) for code in codes[hidden:])
    return DocumentAccess(pairs, (inverse - hidden).astype(np.int32))


def number_lists(column: pa.ChunkedArray) -> tuple[np.ndarray, tuple[AccessList, ...]]:
    """(numbers: int64[n], lists): each distinct list<string> numbered, -1 for a null one.

    Lists are told apart by the numbers of their groups, so no group's name can imitate two.
    """
    lists = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    group_no = lists.flatten().dictionary_encode().indices.cast(pa.string())
    spelled = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), group_no), ",")
    spelled = pc.if_else(lists.is_valid(), spelled, None).dictionary_encode()
    numbers = spelled.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(numbers[numbers >= 0], return_index=True)
    rows = np.flatnonzero(numbers >= 0)[first]
    return numbers, tuple(frozenset(entry) for entry in lists.take(pa.array(rows)).to_pylist())
