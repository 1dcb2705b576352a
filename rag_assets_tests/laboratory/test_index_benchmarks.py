"""The benchmark of a space's indexes: all in one run, and nothing of what was not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rag_assets.embeddings.space import declared_embeddings
from rag_assets.indexes.ann import AnnIndex
from rag_assets.indexes.exact import ExactIndex
from rag_assets.indexes.specs import IvfPq, Refine
from rag_assets.laboratory.index_benchmarks import benchmark_indexes
from rag_assets.laboratory.queries import case_queries
from rag_assets.laboratory.synthetic import SPACE_ID, synthetic_corpus

CORPUS = synthetic_corpus(300, 8, 20, seed=1)
SPACE = declared_embeddings(CORPUS, SPACE_ID)
SPEC = IvfPq(n_clusters=4, nprobe=2, n_subvectors=4, n_bits=4, refine=Refine(2, "exact"))


def test_every_index_is_timed_on_the_same_queries_and_tells_its_stages() -> None:
    indexes = {"exact": ExactIndex.build(SPACE), "ivf_pq": AnnIndex.build(SPEC, SPACE)}
    exact, ann = benchmark_indexes(indexes, case_queries(SPACE, CORPUS), 5, threads=2, budget_s=20)
    assert (exact.index_name, ann.index_name) == ("exact", "ivf_pq")
    assert exact.query_count == ann.query_count == 20
    for times in (exact, ann):
        assert times.p50_ms is not None and times.p95_ms is not None and times.p99_ms is not None
        assert 0 < times.p50_ms <= times.p95_ms <= times.p99_ms
        assert times.queries_per_second is not None and times.queries_per_second > 0
    # Exact search is one stage; the index filters, searches and re-ranks.
    assert (exact.filter_ms, exact.search_ms, exact.rerank_ms) == (None, None, None)
    assert ann.search_ms and ann.rerank_ms and ann.other_ms


def test_queries_that_may_see_nothing_are_not_timed() -> None:
    queries = case_queries(SPACE, CORPUS)
    nothing = np.array([], dtype=np.int64)
    half = replace(queries, eligible_sets=(None, nothing), set_no=np.arange(20, dtype=np.int64) % 2)
    indexes = {"exact": ExactIndex.build(SPACE)}
    [times] = benchmark_indexes(indexes, half, 5, threads=1, budget_s=10)
    assert times.query_count == 10
    blind = replace(queries, eligible_sets=(nothing,), set_no=np.zeros(20, dtype=np.int64))
    assert benchmark_indexes(indexes, blind, 5, threads=1) == ()
