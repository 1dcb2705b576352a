"""A query vector is only ever compared with documents of its own space, whatever its dimension."""

from __future__ import annotations

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.errors import UsageError


def check_same_space(documents: SpaceContract, queries: SpaceContract) -> None:
    """UsageError unless vectors of the two contracts may be compared. Aliases do not matter."""
    if queries.signature != documents.signature:
        raise UsageError(
            f"queries of signature {queries.signature[:12]} cannot search space "
            f"{documents.space_id!r}, whose signature is {documents.signature[:12]}: vectors of "
            "two spaces are not comparable, even with the same dimension; embed the queries in "
            "this space"
        )
