"""What the built tables say of each approximate index, judged by the promotion gate."""

from __future__ import annotations

import json
from typing import Any

import duckdb

from rag_assets.laboratory.promotion import (
    Evidence,
    Promotion,
    SweepEvidence,
    Thresholds,
    judge_promotion,
)

_INDEXES = """
SELECT
    spaces.space_id,
    builds.index_name,
    builds.params,
    builds.status,
    recall.k,
    recall.query_count,
    recall.mean_ann_recall_at_k,
    recall.ndcg_defined_count,
    recall.mean_ndcg_cost,
    benchmark.speedup,
    exact.memory_bytes / benchmark.memory_bytes AS memory_gain
FROM base.index_builds AS builds
JOIN base.spaces AS spaces USING (space_no)
LEFT JOIN ann_recall_by_space AS recall
    ON recall.space_id = spaces.space_id
    AND recall.index_name = builds.index_name
    AND recall.k = (SELECT max(k) FROM base.evaluated_k)
LEFT JOIN index_benchmark AS benchmark
    ON benchmark.space_id = spaces.space_id AND benchmark.index_name = builds.index_name
LEFT JOIN index_benchmark AS exact
    ON exact.space_id = spaces.space_id AND exact.index_name = 'exact'
ORDER BY spaces.space_no, builds.index_name
"""
_SWEEPS = """
SELECT verdicts.sweep, verdicts.parameter, verdicts.verdict, verdicts.plan_digest,
    list(runs.seed ORDER BY runs.seed) AS run_seeds,
    list(runs.mean_ann_recall ORDER BY runs.seed) AS recalls
FROM sweep_verdicts AS verdicts
JOIN sweep_results AS runs USING (sweep, space_id, index_name)
WHERE space_id = ? AND index_name = ? AND verdicts.k = ? AND runs.status = 'ok'
    AND lower(runs.value) = lower(json_extract_string(CAST(? AS JSON), verdicts.parameter))
GROUP BY verdicts.sweep, verdicts.parameter, verdicts.verdict, verdicts.plan_digest
ORDER BY len(run_seeds) DESC, verdicts.sweep
LIMIT 1
"""


def judge_indexes(
    connection: duckdb.DuckDBPyConnection, thresholds: Thresholds, data_digest: str
) -> list[Promotion]:
    """The promotion gate of every declared index, at the largest k.

    A sweep counts where it varied one parameter of this index and the index's own value is among
    those swept: its seeds then are repetitions of this very index.
    """
    indexes = connection.sql(_INDEXES).to_arrow_table().to_pylist()
    return [
        judge_promotion(_evidence(connection, index, data_digest), thresholds) for index in indexes
    ]


def _evidence(
    connection: duckdb.DuckDBPyConnection, index: dict[str, Any], data_digest: str
) -> Evidence:
    built = index["status"] == "built"
    own = index["mean_ann_recall_at_k"]
    seeds: list[int] = [json.loads(index["params"])["seed"]] if built else []
    recalls: list[float] = [] if own is None else [own]
    key = [index["space_id"], index["index_name"], index["k"], index["params"]]
    sweeps = connection.sql(_SWEEPS, params=key).to_arrow_table().to_pylist()
    sweep = None
    if sweeps:
        [found] = sweeps
        seeds, recalls = found["run_seeds"], found["recalls"]
        sweep = SweepEvidence(
            name=found["sweep"],
            parameter=found["parameter"],
            plan_digest=found["plan_digest"],
            successful_seeds=len(seeds),
            verdict=found["verdict"],
        )
    return Evidence(
        space_id=index["space_id"],
        index_name=index["index_name"],
        data_digest=data_digest,
        query_count=index["query_count"],
        seeds=seeds,
        k=index["k"],
        sweep=sweep,
        recalls=recalls,
        latency_gain=index["speedup"],
        memory_gain=index["memory_gain"],
        judged_queries=index["ndcg_defined_count"] or 0,
        judgement_loss=index["mean_ndcg_cost"],
    )
