"""Exact search: the certified top k among the eligible documents, and the index that prepares it.

Every eligible document is scored in float32, block by block, and whatever the error bound of
`proposals` cannot rule out is scored again in float64 and ranked by the rule of `ranking`. The
result therefore depends on neither block size, thread count nor machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rag_assets.canonical.contracts import METRICS, Metric, SpaceContract, canonical_json
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import StoreError, UsageError
from rag_assets.indexes.proposals import prepare_proposals
from rag_assets.indexes.ranking import (
    check_norms,
    grid_steps,
    norms,
    pair_scores,
    rank_pairs,
    ranking_keys,
)
from rag_assets.indexes.scan import scan_candidates

_FORMAT = 1
# Rows whose norms are computed again on loading, to notice vectors that have changed.
_SAMPLE = 64


def positive_k(k: object) -> int:
    """`k` as an int. Raises UsageError unless it is an integer of at least 1 (a bool is not)."""
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer) or k < 1:
        raise UsageError(f"k is {k!r}; it must be a positive integer")
    return int(k)


def top_k(
    documents: np.ndarray,
    queries: np.ndarray,
    k: int,
    metric: Metric,
    *,
    eligible: np.ndarray | None = None,
    document_norms: np.ndarray | None = None,
    block_rows: int | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best `k` eligible documents of each query: (rows: int64[m, k], scores: float64[m, k]).

    `documents: float32|float64[n, d]`, possibly memory-mapped, ascending by item id; `queries:
    float32|float64[m, d]`; `eligible: int64[n_eligible]` ascending and distinct, or None for all;
    `document_norms: float64[n]` from `ranking.norms`, computed for the eligible rows if absent.
    Places beyond the eligible documents hold row -1 and score NaN. Rows that are not eligible are
    never read. `threads`: None means one per available core.
    Raises UsageError for a k that is not a positive integer, and for vectors that are not finite.
    """
    k = positive_k(k)
    if metric not in METRICS:
        raise UsageError(f"metric is {metric!r}; it must be one of {', '.join(METRICS)}")
    if queries.ndim != 2 or documents.ndim != 2 or queries.shape[1] != documents.shape[1]:
        raise UsageError(
            f"queries have shape {queries.shape} and documents {documents.shape}; "
            "both need two axes and the same dimension"
        )
    rows = np.full((len(queries), k), -1, dtype=np.int64)
    scores = np.full((len(queries), k), np.nan)
    query_norms = norms(queries)
    check_norms(query_norms, "query")
    count = len(documents) if eligible is None else len(eligible)
    if count == 0 or len(queries) == 0:
        return rows, scores

    if document_norms is None:
        document_norms = np.full(len(documents), np.nan)
        wanted = slice(None) if eligible is None else eligible
        document_norms[wanted] = norms(documents, eligible)
    eligible_norms = document_norms if eligible is None else document_norms[eligible]
    check_norms(eligible_norms, "eligible document")
    steps = grid_steps(metric, query_norms, float(eligible_norms.max()))

    def ranked(
        query_rows: np.ndarray, places: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(positions, ranks, score of every pair) of the exact top k among these pairs."""
        stored = places if eligible is None else eligible[places]
        pairs = (query_rows, stored)
        exact = pair_scores(documents, queries, pairs, metric, document_norms, query_norms)
        keys = ranking_keys(exact, steps[query_rows])
        return *rank_pairs(query_rows, places, keys, k), exact

    proposals = prepare_proposals(documents, eligible, eligible_norms, queries, query_norms, metric)
    query_rows, places = scan_candidates(
        proposals,
        count,
        min(k, count),
        lambda query_rows, places: ranked(query_rows, places)[0],
        block_rows=block_rows,
        threads=threads,
    )
    positions, ranks, exact = ranked(query_rows, places)
    at = (query_rows[positions], ranks)
    rows[at] = places[positions] if eligible is None else eligible[places[positions]]
    scores[at] = exact[positions]
    return rows, scores


@dataclass(frozen=True)
class ExactIndex:
    """What exact search prepares once for a space; the vectors stay in the space's own file.

    `documents: dtype[n, d]`, possibly memory-mapped, ascending by item id; `document_norms:
    float64[n]`.
    """

    contract: SpaceContract
    documents: np.ndarray
    document_norms: np.ndarray

    @classmethod
    def build(cls, space: EmbeddedSpace) -> ExactIndex:
        documents = space.documents
        return cls(space.contract, documents, norms(documents))

    @property
    def nbytes(self) -> int:
        """Bytes beside the vectors."""
        return self.document_norms.nbytes

    def search(
        self,
        queries: np.ndarray,
        k: int,
        eligible: np.ndarray | None = None,
        *,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `top_k`, in the space's metric."""
        return top_k(
            self.documents,
            queries,
            k,
            self.contract.metric,
            eligible=eligible,
            document_norms=self.document_norms,
            threads=threads,
        )

    def save(self, folder: Path) -> None:
        """Write `document_norms.npy` and `exact_index.json` into an existing folder."""
        np.save(folder / "document_norms.npy", self.document_norms)
        (folder / "exact_index.json").write_text(canonical_json(self._header()) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path, space: EmbeddedSpace) -> ExactIndex:
        """The saved index of `space`. Raises StoreError where it belongs to other vectors."""
        try:
            header = json.loads((folder / "exact_index.json").read_text("utf-8"))
            saved = np.load(folder / "document_norms.npy", mmap_mode="r")
        except (OSError, ValueError) as error:
            raise StoreError(
                f"the exact index of space {space.contract.space_id!r} cannot be read "
                f"({type(error).__name__}); build it again"
            ) from error
        index = cls(space.contract, space.documents, saved)
        count = len(index.documents)
        sample = np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))
        if (
            header != index._header()
            or saved.shape != (count,)
            or not np.array_equal(saved[sample], norms(index.documents, sample), equal_nan=True)
        ):
            raise StoreError(
                f"the exact index of space {space.contract.space_id!r} was built for other "
                "vectors than the space holds now; build it again"
            )
        return index

    def _header(self) -> dict[str, object]:
        return {
            "format": _FORMAT,
            "signature": self.contract.signature,
            "documents": list(self.documents.shape),
        }
