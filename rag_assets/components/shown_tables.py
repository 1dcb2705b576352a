"""Which tables their assets show in the UI, laid out to be read there, and what is plotted."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg
import duckdb
import pyarrow as pa

from rag_assets.components.markdown import markdown_fields, markdown_table

PAIR = ("old_space_id", "new_space_id", "k")
SPACE = ("space_id", "k")
INDEX = ("index_name",)
MEANS = {
    "query_count": "cases",
    "defined_count": "defined",
    "mean_recall_at_k": "recall",
    "mean_precision_at_k": "precision",
    "mrr": "MRR",
    "mean_ndcg_at_k": "nDCG",
}
SHOWN_ROWS = 50
# Wide rows stand upright: the page is narrow.
SHOWN: dict[str, Callable[[pa.Table], str]] = {
    "spaces": lambda rows: markdown_fields(rows, ["space_id"]),
    "space_inventory": lambda rows: markdown_fields(rows, ["space_id"]),
    "metric_by_space": lambda rows: markdown_fields(rows, INDEX, MEANS, above=SPACE),
    "metric_by_subgroup": lambda rows: markdown_fields(
        rows, ["subgroup"], MEANS, above=(*SPACE, *INDEX)
    ),
    "metric_intervals": lambda rows: markdown_table(
        rows,
        {
            "subgroup": "subgroup",
            "measure": "measure",
            "defined_count": "defined",
            "mean": "mean",
            "interval_low": "low",
            "interval_high": "high",
        },
        above=(*SPACE, *INDEX),
    ),
    "migration_audit": lambda rows: markdown_fields(rows, INDEX, above=PAIR),
    "migration_by_query": lambda rows: markdown_table(
        rows,
        {
            "case_id": "case",
            "top_k_jaccard": "Jaccard",
            "delta_ndcg_at_k": "Δ nDCG",
            "delta_reciprocal_rank": "Δ RR",
            "delta_recall_at_k": "Δ recall",
        },
        above=(*PAIR, *INDEX),
    ),
    "migration_by_subgroup": lambda rows: markdown_table(
        rows,
        {
            "subgroup": "subgroup",
            "defined_count": "defined",
            "delta_mean_ndcg_at_k": "Δ nDCG",
            "better": "better",
            "worse": "worse",
            "mean_top_k_jaccard": "Jaccard",
        },
        above=PAIR,
    ),
    "migration_changed_queries": lambda rows: markdown_table(
        rows,
        {
            "query_text": "query",
            "delta_ndcg_at_k": "Δ nDCG",
            "old_results": "old results [grade]",
            "new_results": "new results [grade]",
        },
        above=PAIR,
    ),
    "comparison_statistics": lambda rows: markdown_table(
        rows,
        {
            "subgroup": "subgroup",
            "measure": "measure",
            "verdict": "verdict",
            "sentence": "in words",
        },
        above=("comparison_id", "k"),
    ),
    "regression_gates": lambda rows: markdown_table(
        rows,
        {"rule": "gate", "status": "status", "sentence": "in words"},
        above=("space_id", "index_name"),
    ),
    "answer_thresholds": lambda rows: markdown_fields(
        rows, ["space_id"], {"threshold": "threshold", "sentence": "in words", "refusal": "refused"}
    ),
    "index_promotion": lambda rows: markdown_table(
        rows,
        {"condition": "condition", "status": "status", "evidence": "evidence"},
        above=("space_id", "index_name", "verdict"),
    ),
    "default_index": lambda rows: markdown_fields(rows, ["space_id"]),
    "sweep_verdicts": lambda rows: markdown_fields(
        rows, ["sweep"], {"verdict": "verdict", "reason": "reason", "stopped_at": "stopped at"}
    ),
    "operating_points": lambda rows: markdown_table(
        rows,
        {
            "need": "need",
            "need_p95_ms": "p95 ms",
            "need_min_recall": "least recall",
            "value": "value",
            "reason": "reason",
        },
        above=("sweep", "parameter"),
    ),
    "ann_recall_by_space": lambda rows: markdown_fields(
        rows,
        INDEX,
        {
            "query_count": "cases",
            "defined_count": "defined",
            "mean_ann_recall_at_k": "ANN recall",
            "min_ann_recall_at_k": "lowest",
            "short_cases": "short cases",
            "mean_nprobe": "nprobe",
            "mean_ndcg_cost": "nDCG cost",
        },
        above=SPACE,
    ),
    "index_benchmark": lambda rows: markdown_fields(rows, INDEX, above=SPACE),
    "check_results": lambda rows: markdown_table(
        rows, {"asset": "asset", "check_name": "check", "passed": "passed"}
    ),
    "manifest": markdown_table,
}
PLOTTED = ("metric_by_space", "ann_recall_by_space", "migration_audit")


def shown_table(
    connection: duckdb.DuckDBPyConnection, name: str, row_count: int
) -> dict[str, dg.MetadataValue[str]]:
    """The table `name` as Markdown; nothing for tables that are not shown."""
    if name not in SHOWN:
        return {}
    unseen = f"\n\nand {row_count - SHOWN_ROWS} more rows" if row_count > SHOWN_ROWS else ""
    return {"table": dg.MetadataValue.md(SHOWN[name](_first_rows(connection, name)) + unseen)}


def plotted_numbers(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, float]:
    """Measures as single numbers, which the UI plots over time: "mrr_at_3 (toy-v1, exact)"."""
    if name not in PLOTTED:
        return {}
    table = _first_rows(connection, name)
    numbers = {}
    for row in table.to_pylist():
        named = ("space_id", "old_space_id", "new_space_id", "index_name")
        whose = ", ".join(row[name] for name in named if name in row)
        for column, value in row.items():
            if isinstance(value, float):
                measure = column.replace("top_k_", "").removesuffix("_at_k")
                numbers[f"{measure}_at_{row['k']} ({whose})"] = value
    return numbers


def _first_rows(connection: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    return connection.sql(f"SELECT * FROM {name} LIMIT {SHOWN_ROWS}").to_arrow_table()
