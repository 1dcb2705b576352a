"""Exact search: the certified top k among the eligible documents, and the index that prepares it.

Every eligible document is scored in float32, block by block, and whatever the error bound of
`proposals` cannot rule out is scored again in float64 and ranked by the rule of `ranking`. The
result therefore depends on neither block size, thread count nor machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rag_assets.canonical.contracts import METRICS, Metric, SpaceContract, canonical_json
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.errors import StoreError, UsageError
from rag_assets.indexes.bfloat16 import Bfloat16Targets, bfloat16_targets
from rag_assets.indexes.int8 import (
    Int8Copy,
    Int8Targets,
    has_native_int8,
    int8_targets,
    prepare_copy,
)
from rag_assets.indexes.proposals import prepare_proposals, score_targets
from rag_assets.indexes.ranking import (
    check_norms,
    grid_steps,
    norms,
    pair_scores,
    rank_pairs,
    ranking_keys,
)
from rag_assets.indexes.scan import (
    Narrow,
    Repeats,
    TooClose,
    leading_pairs,
    reaching_pairs,
    scan_candidates,
)

_FORMAT = 2
# From this many eligible documents on int8 is faster (measured: below, the many documents that it
# cannot tell apart cost more than float32 products of so few).
LEAST_ON_INT8 = 1 << 14
# From this many on bfloat16 is, where int8 is not.
LEAST_ON_BFLOAT16 = 1 << 8
# Components of up to so many eligible documents are gathered first, for each is read many times:
# 32 MiB of float32, less than what most processors keep in a cache that their cores share.
_GATHERED = 1 << 23
# Rows whose norms are computed again on loading, to notice vectors that have changed.
_SAMPLE = 64
_COPY_ARRAYS = ("codes", "residuals", "centre")


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
    copy: Int8Copy | None = None,
    block_rows: int | None = None,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best `k` eligible documents of each query: (rows: int64[m, k], scores: float64[m, k]).

    `documents: float32|float64[n, d]`, possibly memory-mapped, ascending by item id; `queries:
    float32|float64[m, d]`; `eligible: int64[n_eligible]` ascending and distinct, or None for all;
    `document_norms: float64[n]` from `ranking.norms`, computed for the eligible rows if absent;
    `copy`: of these documents in this metric, makes the search faster and changes nothing else.
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
    stored = eligible
    if eligible is not None and count < LEAST_ON_INT8 and count * documents.shape[1] <= _GATHERED:
        documents, document_norms, stored = documents[eligible], eligible_norms, None

    def scored(query_rows: np.ndarray, places: np.ndarray) -> np.ndarray:
        pairs = (query_rows, places if stored is None else stored[places])
        return pair_scores(documents, queries, pairs, metric, document_norms, query_norms)

    def best(
        query_rows: np.ndarray, places: np.ndarray, exact: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        keys = ranking_keys(exact, steps[query_rows])
        return rank_pairs(query_rows, places, keys, k)

    query_rows, places, exact = _scored_candidates(
        (documents, stored, eligible_norms, queries, query_norms, metric),
        min(k, count),
        copy if count >= LEAST_ON_INT8 else None,
        scored,
        lambda query_rows, places: best(query_rows, places, scored(query_rows, places))[0],
        block_rows=block_rows,
        threads=threads,
    )
    positions, ranks = best(query_rows, places, exact)
    at = (query_rows[positions], ranks)
    rows[at] = places[positions] if eligible is None else eligible[places[positions]]
    scores[at] = exact[positions]
    return rows, scores


def _scored_candidates(
    stage: tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray, np.ndarray, Metric],
    k: int,
    copy: Int8Copy | None,
    scored: Callable[[np.ndarray, np.ndarray], np.ndarray],
    narrow: Narrow,
    *,
    block_rows: int | None,
    threads: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that may be in a top k: (query rows: int64[p], places: int64[p], scores: float64[p]).

    `stage` as `prepare_proposals`; `scored(query_rows, places)` gives the scores of pairs.
    """
    proposals = prepare_proposals(*stage)
    count = len(proposals.documents) if proposals.rows is None else len(proposals.rows)

    def repeats(start: int, stop: int) -> Repeats:
        return Repeats(lambda: proposals.stored(start, stop), k)

    coarse: Int8Targets | Bfloat16Targets | None = None
    if copy is not None:
        coarse = int8_targets(copy, *stage[2:], proposals)
    if coarse is None and count >= LEAST_ON_BFLOAT16:
        coarse = bfloat16_targets(proposals)
    if coarse is not None:
        try:
            query_rows, places, values = scan_candidates(
                coarse, count, k, repeats, block_rows=block_rows, threads=threads
            )
        except TooClose:
            pass
        else:
            # What seems to be the top k is scored first, for it mostly is. Of the other pairs,
            # its least score rules out most by one look at targets that are already there, then
            # almost all by one in float32.
            leading = leading_pairs(query_rows, values, k)
            first = leading.ravel()
            exact = np.full(len(places), np.nan)
            exact[first] = scored(query_rows[first], places[first])
            *_, query_norms, metric = stage
            least = score_targets(metric, exact[leading].min(axis=1), query_norms, proposals.scale)
            others = np.isnan(exact)
            if isinstance(coarse, Bfloat16Targets):
                others &= values >= (least - coarse.one_sided)[query_rows]
            rest = np.flatnonzero(others)
            targets = proposals.pair_targets(query_rows[rest], places[rest])
            rest = rest[targets >= (least - proposals.margin)[query_rows[rest]]]
            exact[rest] = scored(query_rows[rest], places[rest])
            kept = np.flatnonzero(~np.isnan(exact))
            return query_rows[kept], places[kept], exact[kept]
    query_rows, places, values = scan_candidates(
        proposals, count, k, repeats, narrow, block_rows=block_rows, threads=threads
    )
    kept = reaching_pairs(query_rows, values, proposals.margin, k)
    query_rows, places = query_rows[kept], places[kept]
    return query_rows, places, scored(query_rows, places)


@dataclass(frozen=True)
class ExactIndex:
    """What exact search prepares once for a space; the vectors stay in the space's own file.

    `documents: dtype[n, d]`, possibly memory-mapped, ascending by item id; `document_norms:
    float64[n]`; `copy`: as 8-bit integers, where that makes searching faster.
    """

    contract: SpaceContract
    documents: np.ndarray
    document_norms: np.ndarray
    copy: Int8Copy | None = None

    @classmethod
    def build(cls, space: EmbeddedSpace) -> ExactIndex:
        documents = space.documents
        lengths = norms(documents)
        copy = None
        if len(documents) >= LEAST_ON_INT8 and has_native_int8():
            copy = prepare_copy(documents, lengths, space.contract.metric)
        return cls(space.contract, documents, lengths, copy)

    @property
    def nbytes(self) -> int:
        """Bytes beside the vectors."""
        return self.document_norms.nbytes + (0 if self.copy is None else self.copy.nbytes)

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
            copy=self.copy,
            threads=threads,
        )

    def save(self, folder: Path) -> None:
        """Write `document_norms.npy`, `exact_index.json` and, where there is a copy on 8-bit
        integers, `int8_*.npy` into an existing folder."""
        np.save(folder / "document_norms.npy", self.document_norms)
        int8 = None
        if self.copy is not None:
            for name in _COPY_ARRAYS:
                np.save(folder / f"int8_{name}.npy", getattr(self.copy, name))
            int8 = {"scale": self.copy.scale, "longest": self.copy.longest}
        header = {**self._header(), "int8": int8}
        (folder / "exact_index.json").write_text(canonical_json(header) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path, space: EmbeddedSpace) -> ExactIndex:
        """The saved index of `space`. Raises StoreError where it belongs to other vectors."""
        try:
            header = json.loads((folder / "exact_index.json").read_text("utf-8"))
            saved = np.load(folder / "document_norms.npy", mmap_mode="r")
            int8 = header.pop("int8")
            copy = None
            if int8 is not None:
                arrays = {
                    name: np.load(folder / f"int8_{name}.npy", mmap_mode="r")
                    for name in _COPY_ARRAYS
                }
                copy = Int8Copy(**arrays, scale=int8["scale"], longest=int8["longest"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"the exact index of space {space.contract.space_id!r} cannot be read "
                f"({type(error).__name__}); build it again"
            ) from error
        index = cls(space.contract, space.documents, saved, copy)
        count, metric = len(index.documents), space.contract.metric
        sample = np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))
        if (
            header != index._header()
            or saved.shape != (count,)
            or not np.array_equal(saved[sample], norms(index.documents, sample), equal_nan=True)
            or (copy is not None and not copy.holds(index.documents, saved, sample, metric))
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
