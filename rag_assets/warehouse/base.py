"""The base tables: numbered inputs of the SQL models, each schema with its one home."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rag_assets.canonical.corpus import CASES, ITEMS, QRELS, RESULTS, SPACE_ITEMS
from rag_assets.decisions.schemas import (
    BUDGETS,
    CHECKLIST,
    DECISIONS,
    SPACE_SWITCHES,
    TOMBSTONES,
)
from rag_assets.regression.baseline import BASELINE
from rag_assets.regression.rows import BY_QUERY, GATES
from rag_assets.statistics.comparisons import COMPARISONS
from rag_assets.statistics.means import INTERVALS
from rag_assets.thresholds.calibration import CURVE
from rag_assets.thresholds.rows import THRESHOLDS

CONTRACT_TEXTS = (
    "query_prompt",
    "document_prompt",
    "pooling",
    "truncation",
    "derivation",
    "derived_from",
    "licence",
    "looked_up_at",
    "looked_up_on",
)
BUILD_NUMBERS = ("build_ms", "index_bytes", "memory_bytes")
TIMES = (
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "best_p50_ms",
    "best_p95_ms",
    "queries_per_second",
    "queries_per_second_parallel",
    "filter_ms",
    "search_ms",
    "rerank_ms",
    "other_ms",
)
SWEEP_KEY = (
    ("sweep", pa.string()),
    ("space_no", pa.int16()),
    ("index_name", pa.string()),
    ("parameter", pa.string()),
)
SWEEP_NUMBERS = (
    "mean_recall",
    "mean_tie_aware_recall",
    "recall_low",
    "recall_high",
    "p50_ms",
    "p95_ms",
    "best_p50_ms",
    "best_p95_ms",
    "exact_best_p95_ms",
    "build_ms",
)
VALUE_NUMBERS = (
    "mean_recall",
    "min_recall",
    "max_recall",
    "std_recall",
    "mean_p95_ms",
    "mean_best_p95_ms",
)

SNAPSHOT_ITEMS = ("item_id", "role", "acl", "source_revision", "content_sha256")
SNAPSHOT_SPACE = ("provider", "model", "revision", "contract_signature")
HISTORY_METRICS = pa.schema(
    [
        ("evaluation_id", pa.string()),
        ("space_id", pa.string()),
        ("index_name", pa.string()),
        ("subgroup", pa.string()),  # NULL: all queries
        ("k", pa.int32()),
        ("query_count", pa.int64()),
        ("defined_count", pa.int64()),
        ("mean_recall_at_k", pa.float64()),
        ("mean_precision_at_k", pa.float64()),
        ("mrr", pa.float64()),
        ("mean_ndcg_at_k", pa.float64()),
    ]
)
HISTORY_AUDITS = pa.schema(
    [
        ("evaluation_id", pa.string()),
        ("old_space_id", pa.string()),
        ("new_space_id", pa.string()),
        ("index_name", pa.string()),
        ("k", pa.int32()),
        ("status", pa.string()),
        ("status_reason", pa.string()),
        ("vectors_directly_comparable", pa.bool_()),
        ("inventory_match", pa.bool_()),
        ("canonical_match", pa.bool_()),
        ("only_old_count", pa.int64()),
        ("only_new_count", pa.int64()),
        ("canonical_mismatch_count", pa.int64()),
        ("mechanical_gates_pass", pa.bool_()),
        ("defined_count", pa.int64()),
        ("delta_mean_recall_at_k", pa.float64()),
        ("delta_mrr", pa.float64()),
        ("delta_mean_ndcg_at_k", pa.float64()),
        ("mean_top_k_jaccard", pa.float64()),
        ("quality_decision_required", pa.bool_()),
    ]
)
HISTORY_CHECKS = pa.schema(
    [
        ("evaluation_id", pa.string()),
        ("dagster_run_id", pa.string()),
        ("asset", pa.string()),
        ("check_name", pa.string()),
        ("passed", pa.bool_()),
        ("severity", pa.string()),
        ("evaluated_at", pa.timestamp("us")),  # UTC
        ("details", pa.string()),  # JSON
    ]
)

_space_item_fields = [field for field in SPACE_ITEMS if field.name != "item_id"]

# The inputs of the SQL models. They stay in the release, so that a reader can run any model file
# again as it stands.
BASE: Mapping[str, pa.Schema] = {
    "spaces": pa.schema(
        [
            ("space_no", pa.int16()),
            ("space_id", pa.string()),
            ("provider", pa.string()),
            ("model", pa.string()),
            ("revision", pa.string()),
            ("dimension", pa.int32()),
            ("metric", pa.string()),
            ("normalized", pa.bool_()),
            ("query_role", pa.string()),
            ("document_role", pa.string()),
            ("dtype", pa.string()),
            ("contract_signature", pa.string()),
            *((name, pa.string()) for name in CONTRACT_TEXTS),
            ("max_input_tokens", pa.int32()),
            ("status", pa.string()),  # 'evaluated' or 'not_executed'
            ("status_reason", pa.string()),
        ]
    ),
    "items": ITEMS,
    "space_items": pa.schema([*_space_item_fields, ("l2_norm", pa.float64())]),
    "cases": CASES,
    "qrels": QRELS,
    # scope 0 is a search over all documents of the space; scope = pair_no one over the documents
    # that both spaces of that audited pair hold, present where the two hold different documents.
    "results": pa.schema(
        [
            ("scope", pa.int16()),
            ("space_no", pa.int16()),
            ("index_name", pa.string()),
            *RESULTS,
            # The true score of what an approximate index returned; NULL for a run from elsewhere.
            ("exact_score", pa.float64()),
        ]
    ),
    # What each search of scope 0 did: `path` is "empty", "exact" or "index".
    "searches": pa.schema(
        [
            ("space_no", pa.int16()),
            ("index_name", pa.string()),
            ("case_no", pa.int32()),
            ("eligible_count", pa.int32()),
            ("nprobe", pa.int32()),
            ("path", pa.string()),
            ("grid_step", pa.float64()),
        ]
    ),
    "evaluated_k": pa.schema([("k", pa.int32())]),
    "audited_pairs": pa.schema(
        [("pair_no", pa.int16()), ("old_space_no", pa.int16()), ("new_space_no", pa.int16())]
    ),
    # What was executed: a case with judgements and no result scores 0 there, not nothing.
    "indexes": pa.schema([("space_no", pa.int16()), ("index_name", pa.string())]),
    # Every approximate index that was declared; `status` is 'built' or 'not_executed'.
    "index_builds": pa.schema(
        [
            ("space_no", pa.int16()),
            ("index_name", pa.string()),
            ("kind", pa.string()),
            ("params", pa.string()),  # JSON
            ("seed", pa.int64()),
            ("status", pa.string()),
            ("status_reason", pa.string()),
            ("build_ms", pa.float64()),
            ("index_bytes", pa.int64()),
            ("memory_bytes", pa.int64()),
        ]
    ),
    # Times of the indexes of one space, measured in one run; NULL where nothing was measured.
    "benchmarks": pa.schema(
        [
            ("space_no", pa.int16()),
            ("index_name", pa.string()),
            ("k", pa.int32()),
            ("query_count", pa.int32()),
            ("rounds", pa.int32()),
            *((name, pa.float64()) for name in TIMES),
            ("threads", pa.int32()),
            ("note", pa.string()),
        ]
    ),
    # One row per value and seed of a sweep; numbers are NULL where the seed failed.
    "sweep_runs": pa.schema(
        [
            *SWEEP_KEY,
            ("value_no", pa.int16()),
            ("value", pa.string()),
            ("seed", pa.int64()),
            ("status", pa.string()),
            ("reason", pa.string()),
            ("query_count", pa.int32()),
            ("defined_count", pa.int32()),
            *((name, pa.float64()) for name in SWEEP_NUMBERS),
            ("short_results", pa.int64()),
            ("index_bytes", pa.int64()),
        ]
    ),
    # One row per value of a sweep: its seeds summed up.
    "sweep_values": pa.schema(
        [
            *SWEEP_KEY,
            ("value_no", pa.int16()),
            ("value", pa.string()),
            ("seeds", pa.int32()),
            ("failed", pa.int32()),
            *((name, pa.float64()) for name in VALUE_NUMBERS),
            ("on_pareto_front", pa.bool_()),
        ]
    ),
    "sweep_verdicts": pa.schema(
        [
            *SWEEP_KEY,
            ("k", pa.int32()),
            ("seeds", pa.list_(pa.int64())),
            ("verdict", pa.string()),
            ("reason", pa.string()),
            ("stopped_at", pa.string()),
            ("claim", pa.string()),  # JSON, as are the next two
            ("stop_rule", pa.string()),
            ("plan", pa.string()),
            ("plan_digest", pa.string()),
            ("registered_at", pa.string()),
        ]
    ),
    "operating_points": pa.schema(
        [
            *SWEEP_KEY,
            ("need", pa.string()),
            ("need_p95_ms", pa.float64()),
            ("need_min_recall", pa.float64()),
            ("value", pa.string()),
            ("mean_recall", pa.float64()),
            ("mean_p95_ms", pa.float64()),
            ("reason", pa.string()),
        ]
    ),
    # The promotion gate: one row per condition, with the verdict on its index repeated.
    "promotion": pa.schema(
        [
            ("space_no", pa.int16()),
            ("index_name", pa.string()),
            ("condition_no", pa.int16()),
            ("condition", pa.string()),
            ("status", pa.string()),
            ("evidence", pa.string()),
            ("threshold", pa.string()),
            ("verdict", pa.string()),
        ]
    ),
    # Migrations and indexes compared: see rag_assets.statistics.
    "comparisons": COMPARISONS,
    # The pinned baseline and the gates that compare with it: see rag_assets.regression.
    "baseline": BASELINE,
    "baseline_by_query": BY_QUERY,
    "regression_gates": GATES,
    "metric_intervals": INTERVALS,
    # No-answer thresholds; `refusal` says why one must not be used, NULL where it may.
    "thresholds": pa.schema([*THRESHOLDS, ("refusal", pa.string())]),
    "threshold_curve": CURVE,
    # The index that serves each space, and the decision that made it so (none for 'exact').
    "default_indexes": pa.schema(
        [
            ("space_no", pa.int16()),
            ("index_name", pa.string()),
            ("decided_by", pa.string()),
            ("decided_at", pa.string()),
            ("why", pa.string()),
            ("evidence", pa.string()),
        ]
    ),
    # What people state and decide: see rag_assets.decisions.
    "budgets": BUDGETS,
    "tombstones": TOMBSTONES,
    "decisions": DECISIONS,
    "checklist": CHECKLIST,
    "space_switches": SPACE_SWITCHES,
    "checks": pa.schema(
        [
            ("check_name", pa.string()),
            ("asset", pa.string()),
            ("passed", pa.bool_()),
            ("severity", pa.string()),
            ("evaluated_at", pa.timestamp("us")),  # UTC
            ("details", pa.string()),  # JSON
        ]
    ),
    "manifest": pa.schema([("key", pa.string()), ("value", pa.string())]),
    # This evaluation and the earlier ones that are kept; see rag_assets.history.
    "evaluations": pa.schema(
        [
            ("evaluation_id", pa.string()),
            ("evaluated_at", pa.timestamp("us")),  # UTC
            ("dagster_run_id", pa.string()),
            ("data_version", pa.string()),
            ("code_version", pa.string()),
            ("contract_signatures", pa.string()),  # JSON, as is the next
            ("manifest", pa.string()),
            ("is_latest", pa.bool_()),
            ("is_previous", pa.bool_()),
        ]
    ),
    "heartbeats": pa.schema(
        [
            ("evaluation_id", pa.string()),
            ("seen_at", pa.timestamp("us")),  # UTC
            ("dagster_run_id", pa.string()),
        ]
    ),
    # Rows of earlier evaluations, as they were published then.
    "history_metrics": HISTORY_METRICS,
    "history_audits": HISTORY_AUDITS,
    # The same; without an evaluation where a check stopped the run before it.
    "history_checks": HISTORY_CHECKS,
    # What the evaluation before this one looked at.
    "previous_items": pa.schema([ITEMS.field(name) for name in SNAPSHOT_ITEMS]),
    "previous_cases": pa.schema([("case_id", pa.string()), ("case_digest", pa.string())]),
    "previous_spaces": pa.schema([(name, pa.string()) for name in ("space_id", *SNAPSHOT_SPACE)]),
}
NULLABLE = frozenset(
    {
        ("spaces", "status_reason"),
        *(("spaces", name) for name in (*CONTRACT_TEXTS, "max_input_tokens")),
        *(("comparisons", name) for name in COMPARISONS.names),
        *(("baseline_by_query", name) for name in BY_QUERY.names),
        *(("regression_gates", name) for name in GATES.names),
        *(("metric_intervals", name) for name in INTERVALS.names),
        *(("thresholds", name) for name in (*THRESHOLDS.names, "refusal")),
        *(("threshold_curve", name) for name in CURVE.names),
        ("space_items", "l2_norm"),
        ("results", "exact_score"),
        ("searches", "nprobe"),
        ("cases", "split"),
        *(("index_builds", name) for name in ("status_reason", *BUILD_NUMBERS)),
        *(("benchmarks", name) for name in (*TIMES, "note")),
        *(("sweep_runs", name) for name in (*SWEEP_NUMBERS, "reason", "defined_count")),
        *(("sweep_runs", name) for name in ("short_results", "index_bytes")),
        *(("sweep_values", name) for name in VALUE_NUMBERS),
        ("sweep_verdicts", "stopped_at"),
        *(("operating_points", name) for name in ("value", "mean_recall", "mean_p95_ms")),
        *(("default_indexes", name) for name in ("decided_by", "decided_at", "why", "evidence")),
        *(("budgets", name) for name in ("estimate", "source")),
        ("decisions", "reason"),
        *(("checklist", name) for name in ("decided_by", "decided_at")),
        *(("space_switches", name) for name in ("evaluation_id", "forced")),
        ("checks", "details"),
        ("manifest", "value"),
        *(("history_metrics", name) for name in HISTORY_METRICS.names),
        *(("history_audits", name) for name in HISTORY_AUDITS.names),
        *(("history_checks", name) for name in HISTORY_CHECKS.names),
    }
)
