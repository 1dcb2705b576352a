"""Exact search against FAISS, on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np

from benchmarks.timing import Measurement, compared, times
from rag_assets.indexes.exact import top_k
from rag_assets.indexes.int8 import has_native_int8, prepare_copy
from rag_assets.indexes.ranking import norms

K = 10
# The peers that are many times slower get at most so many queries.
_SLOW_QUERIES = 100
# Rounds of arms that take hundredths of a second, which other programs disturb most.
_SHORT_ROUNDS = 20
_BLAS, _DEFAULT = 800, int(faiss.cvar.distance_compute_blas_threshold)


def unit_vectors(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """float32[count, dimension], Gaussian directions."""
    vectors = rng.standard_normal((count, dimension), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def exact_search(count: int, dimension: int, rounds: int) -> Iterator[Measurement]:
    """exact-*q and exact-acl-* at `count` documents."""
    faiss.omp_set_num_threads(1)
    rng = np.random.default_rng(0)
    documents = unit_vectors(rng, count, dimension)
    lengths = norms(documents)
    copy = prepare_copy(documents, lengths, "cosine") if has_native_int8() else None
    index = faiss.IndexFlatIP(dimension)
    index.add(documents)
    shape = {
        "documents": count,
        "dimension": dimension,
        "k": K,
        "threads": 1,
        "int8": copy is not None,
    }

    def ours(queries: np.ndarray, eligible: np.ndarray | None = None) -> np.ndarray:
        return top_k(
            documents,
            queries,
            K,
            "cosine",
            eligible=eligible,
            document_norms=lengths,
            copy=copy,
            threads=1,
        )[0]

    def flat(queries: np.ndarray, threshold: int, **options: Any) -> np.ndarray:
        faiss.cvar.distance_compute_blas_threshold = threshold
        found: np.ndarray = index.search(queries, K, **options)[1]
        return found

    def gathered(queries: np.ndarray, eligible: np.ndarray) -> np.ndarray:
        faiss.cvar.distance_compute_blas_threshold = _BLAS
        part = documents[eligible]
        _, places = faiss.knn(queries, part, K, metric=faiss.METRIC_INNER_PRODUCT)
        return np.asarray(eligible[places])

    for query_count in (100, 1000, 10_000):
        queries = unit_vectors(rng, query_count, dimension)
        few = queries[:_SLOW_QUERIES]
        agreement = float((ours(few) == flat(few, _BLAS)).mean())
        fast = times(
            {"ours": lambda q=queries: ours(q), "flat": lambda q=queries: flat(q, _BLAS)},
            rounds if query_count < 10_000 else 1,
            warm=query_count < 10_000,
        )
        slow = times({"flat": lambda q=few: flat(q, _DEFAULT)}, 1, warm=False)
        settings = {**shape, "queries": query_count, "same_rows": round(agreement, 4)}
        name = f"exact-{query_count}q"
        yield compared(
            name,
            f"faiss.IndexFlatIP, distance_compute_blas_threshold {_BLAS}",
            fast["ours"],
            fast["flat"],
            **settings,
        )
        yield compared(
            name,
            f"faiss.IndexFlatIP, distance_compute_blas_threshold {_DEFAULT} (default)",
            fast["ours"],
            slow["flat"],
            peer_share=len(few) / query_count,
            **settings,
        )

    queries = unit_vectors(rng, 1000, dimension)
    few = queries[:_SLOW_QUERIES]
    for percent in (50, 5, 0.5):
        eligible = np.sort(rng.permutation(count)[: int(count * percent / 100)])
        bits = np.zeros(count, dtype=bool)
        bits[eligible] = True
        packed = np.packbits(bits, bitorder="little")
        selector = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(packed))
        agreement = float((ours(few, eligible) == gathered(few, eligible)).mean())
        fast = times(
            {
                "ours": lambda e=eligible: ours(queries, e),
                "gathered": lambda e=eligible: gathered(queries, e),
            },
            rounds if percent >= 5 else _SHORT_ROUNDS,
        )
        slow = times({"selector": lambda s=selector: flat(few, _BLAS, params=s)}, 1, warm=False)
        settings = {
            **shape,
            "queries": len(queries),
            "eligible": len(eligible),
            "same_rows": round(agreement, 4),
        }
        name = f"exact-acl-{percent:g}"
        yield compared(
            name,
            "faiss.IndexFlatIP with IDSelectorBitmap",
            fast["ours"],
            slow["selector"],
            peer_share=len(few) / len(queries),
            **settings,
        )
        yield compared(
            name,
            f"gather, then faiss.knn, distance_compute_blas_threshold {_BLAS}",
            fast["ours"],
            fast["gathered"],
            **settings,
        )
