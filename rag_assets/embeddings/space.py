"""One space's embeddings in memory (or memory-mapped)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus


@dataclass(frozen=True)
class EmbeddedSpace:
    """Vectors of one space.

    `items` follows SPACE_ITEMS: documents first, then query items, each by `item_no`.
    `vectors`: `dtype[n_items, dimension]` in that row order, possibly memory-mapped, read-only.
    """

    contract: SpaceContract
    items: pa.Table
    vectors: np.ndarray

    @property
    def document_count(self) -> int:
        total = pc.sum(pc.equal(self.items["role"], self.contract.document_role)).as_py()
        return int(total or 0)

    @property
    def documents(self) -> np.ndarray:
        """`dtype[n_documents, dimension]`, ascending by item id."""
        return self.vectors[: self.document_count]

    @property
    def document_item_no(self) -> np.ndarray:
        """`int32[n_documents]`."""
        numbers: np.ndarray = self.items["item_no"].to_numpy()
        return numbers[: self.document_count]


def declared_embeddings(corpus: Corpus, space_id: str) -> EmbeddedSpace:
    """The vectors that the source itself declares for a space."""
    return EmbeddedSpace(
        contract=corpus.contract(space_id),
        items=corpus.items_of(space_id),
        vectors=corpus.vectors[space_id],
    )
