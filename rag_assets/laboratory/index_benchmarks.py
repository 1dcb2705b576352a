"""The benchmark of a space's indexes: exact search and every approximate one, in one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rag_assets.indexes.ann import AnnIndex
from rag_assets.laboratory.latency import Arm, measure_latency, measure_throughput
from rag_assets.laboratory.queries import Queries, SearchIndex
from rag_assets.laboratory.stages import StageClock, mean_stage_ms
from rag_assets.laboratory.sweep_runs import search_arm

TIMED_QUERIES = 1000
STAGED_QUERIES = 200


@dataclass(frozen=True, slots=True)
class IndexTimes:
    """Times of one index, in milliseconds; None where the time budget left nothing to report.

    `p50_ms` to `p99_ms` pool every single-query call; `best_*` are over queries at their fastest
    call, which is what ratios are made of. `queries_per_second` is of batches on one thread,
    `queries_per_second_parallel` on `threads`. `filter_ms` to `other_ms` are means per query by
    stage, for indexes that can tell (exact search is one stage; 8-bit re-ranking counts as search,
    because FAISS does both). `note` says what the budget cut short.
    """

    index_name: str
    k: int
    query_count: int
    rounds: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    best_p50_ms: float | None
    best_p95_ms: float | None
    queries_per_second: float | None
    queries_per_second_parallel: float | None
    threads: int
    filter_ms: float | None
    search_ms: float | None
    rerank_ms: float | None
    other_ms: float | None
    note: str | None


def benchmark_indexes(
    indexes: Mapping[str, SearchIndex],
    queries: Queries,
    k: int,
    *,
    threads: int,
    seed: int = 0,
    budget_s: float = 60.0,
) -> tuple[IndexTimes, ...]:
    """Time indexes against each other on queries that may see something.

    At most TIMED_QUERIES of them, drawn with `seed`, are timed one by one; a third of `budget_s`
    goes to batches. No query that may see anything: no times.
    """
    seeing = np.flatnonzero(
        [rows is None or len(rows) > 0 for rows in map(queries.eligible, range(len(queries)))]
    )
    if seeing.size == 0:
        return ()
    if seeing.size > TIMED_QUERIES:
        seeing = np.sort(np.random.default_rng(seed).choice(seeing, TIMED_QUERIES, replace=False))
    timed = queries.take(seeing)
    arms = [search_arm(name, index, timed, k) for name, index in indexes.items()]
    latency = measure_latency(arms, len(timed), budget_s=budget_s * 2 / 3)

    def batches(count: int) -> dict[str, float]:
        wide: list[Arm] = [
            search_arm(name, index, timed, k, threads=count) for name, index in indexes.items()
        ]
        speeds = measure_throughput(wide, len(timed), threads=count, budget_s=budget_s / 6)
        return {speed.arm: speed.queries_per_second for speed in speeds}

    single, parallel = batches(1), batches(threads)
    return tuple(
        IndexTimes(
            index_name=arm.arm,
            k=k,
            query_count=len(timed),
            rounds=latency.rounds,
            p50_ms=_known(arm.p50_ms),
            p95_ms=_known(arm.p95_ms),
            p99_ms=_known(arm.p99_ms),
            best_p50_ms=_known(arm.best_p50_ms),
            best_p95_ms=_known(arm.best_p95_ms),
            queries_per_second=_known(single[arm.arm]),
            queries_per_second_parallel=_known(parallel[arm.arm]),
            threads=threads,
            **_stages(indexes[arm.arm], timed, k),
            note=latency.cut_short,
        )
        for arm in latency.arms
    )


def _stages(index: SearchIndex, queries: Queries, k: int) -> dict[str, float | None]:
    names = ("filter", "search", "rerank", "other")
    if not isinstance(index, AnnIndex):
        return {f"{name}_ms": None for name in names}

    def run(rows: np.ndarray, stages: StageClock) -> None:
        eligible = queries.eligible(int(rows[0]))
        index.search_detailed(queries.vectors[rows], k, eligible, threads=1, stages=stages)

    spent = mean_stage_ms(run, min(len(queries), STAGED_QUERIES))
    return {f"{name}_ms": spent.get(name, 0.0) for name in names}


def _known(number: float) -> float | None:
    return None if np.isnan(number) else float(number)
