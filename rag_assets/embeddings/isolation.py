"""A query vector is only ever compared with documents of its own space, whatever its dimension."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import UsageError


def same_space(a: SpaceContract, b: SpaceContract) -> bool:
    """Whether vectors of the two contracts may be compared. The storage alias does not matter."""
    return a.signature == b.signature


def check_same_space(documents: EmbeddedSpace, queries_signature: str) -> None:
    """UsageError unless query vectors of that signature may search these documents."""
    contract = documents.contract
    if queries_signature != contract.signature:
        raise UsageError(
            f"queries of signature {queries_signature[:12]} cannot search space "
            f"{contract.space_id!r}, whose signature is {contract.signature[:12]}: vectors of two "
            "spaces are not comparable, even with the same dimension; embed the queries in "
            "this space"
        )


def space_of_parts(documents: EmbeddedSpace, queries: EmbeddedSpace) -> EmbeddedSpace:
    """The documents of the first and the queries of the second as one space that can be searched.

    UsageError as `check_same_space`. This is the only way to join parts that were embedded apart;
    search takes an EmbeddedSpace, so that queries and documents of two spaces never meet.
    """
    check_same_space(documents, queries.contract.signature)
    items = pa.concat_tables(
        [
            documents.items.slice(0, documents.document_count),
            queries.items.slice(queries.document_count),
        ]
    )
    vectors = np.concatenate([documents.documents, queries.vectors[queries.document_count :]])
    return EmbeddedSpace(documents.contract, items, vectors)
