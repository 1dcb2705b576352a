"""What `rag-assets evaluate` prints, read from the built tables."""

from __future__ import annotations

import json
from typing import Any

import duckdb

from rag_assets.evaluation import NOTICE
from rag_assets.tabular import joined, text_table
from rag_assets.warehouse.rows import query_rows

Row = dict[str, Any]


def as_json(connection: duckdb.DuckDBPyConnection) -> str:
    """The evaluation as JSON, equal to the byte for equal input. Undefined values are null."""
    spaces = query_rows(connection, "SELECT * FROM spaces ORDER BY space_no")
    document = {
        "notice": NOTICE,
        "k": [
            row["k"] for row in query_rows(connection, "SELECT k FROM base.evaluated_k ORDER BY k")
        ],
        "spaces": {row["space_id"]: _space(connection, row) for row in spaces},
        "migration_audits": _audits(connection),
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)


def as_tables(connection: duckdb.DuckDBPyConnection) -> str:
    """The evaluation for a terminal; numbers are rounded here only."""
    return joined([*summary_tables(connection), f"Note: {NOTICE}"])


def summary_tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """What a person reads first, as text: spaces, measures, audits and failed checks."""
    found = {title: connection.sql(query).to_arrow_table() for title, query in SUMMARY.items()}
    tables = [text_table(table, title=title) for title, table in found.items() if len(table) > 0]
    for title, query in SENTENCES.items():
        lines = [f" {line}" for (line,) in connection.sql(query).fetchall()]
        if lines:
            tables.append("\n".join([title, *lines]))
    return tables


# One line each, where a table would cut the sentences.
SENTENCES = {
    "Is it more than chance? (all queries, largest k)": """
        SELECT comparison_id || ': ' || sentence
        FROM comparison_statistics
        WHERE subgroup IS NULL AND measure = 'ndcg_at_k' AND defined_count > 0
            AND k = (SELECT max(k) FROM base.evaluated_k)
        ORDER BY comparison_id
    """,
    "Sweeps": """
        SELECT sweep || ': ' || replace(verdict, '_', ' ') || ': ' || reason
        FROM sweep_verdicts ORDER BY sweep
    """,
    "May an approximate index become the default?": """
        SELECT index_name || ' of ' || space_id || ': ' || replace(verdict, '_', ' ')
            || coalesce('; does not pass: ' || string_agg(condition, ', ' ORDER BY condition)
                FILTER (WHERE status <> 'pass'), '')
        FROM index_promotion GROUP BY space_id, index_name, verdict ORDER BY ALL
    """,
    "Regression gates": """
        SELECT replace(upper(status), '_', ' ') || ' ' || space_id || ', ' || index_name || ': '
            || sentence
        FROM regression_gates WHERE status IN ('fail', 'inconclusive')
    """,
    "Checks that did not pass": """
        SELECT asset || ' ' || check_name || ' (' || severity || '): ' || array_to_string(
            list_transform(
                list_filter(
                    CAST(json_extract(CAST(details AS JSON), '$.outcomes') AS JSON[]),
                    lambda outcome: outcome->>'status' <> 'passed'
                ),
                lambda outcome: coalesce(outcome->>'column', outcome->>'table') || ' '
                    || (outcome->>'observed')
            ),
            '; '
        )
        FROM check_results WHERE NOT passed ORDER BY asset, check_name
    """,
}
SUMMARY = {
    "Spaces": "SELECT space_id, model, revision, dimension, metric, document_count, "
    "query_item_count, estimated_raw_vector_bytes AS raw_bytes "
    "FROM spaces JOIN space_inventory USING (space_id, dimension) ORDER BY space_no",
    "Relevance (means over queries with a defined value)": "SELECT m.* FROM metric_by_space AS m "
    "JOIN spaces USING (space_id) ORDER BY space_no, index_name, k",
    "Mean nDCG by subgroup, at the largest k": "PIVOT (SELECT subgroup, m.k, query_count, "
    "space_id || ' ' || index_name AS arm, mean_ndcg_at_k FROM metric_by_subgroup AS m "
    "WHERE m.k = (SELECT max(k) FROM base.evaluated_k)) "
    "ON arm USING first(mean_ndcg_at_k) ORDER BY subgroup",
    "Approximate indexes: recall against exact search (not relevance)": "SELECT a.space_id, "
    "index_name, k, a.query_count, a.defined_count, mean_ann_recall_at_k, min_ann_recall_at_k, "
    "short_cases, mean_ndcg_cost FROM ann_recall_by_space AS a JOIN spaces USING (space_id) "
    "ORDER BY space_no, index_name, k",
    "Migrations: mechanical gates": "SELECT DISTINCT old_space_id, new_space_id, inventory_match, "
    "canonical_match, mechanical_gates_pass, only_old_count, only_new_count, "
    "canonical_mismatch_count, vectors_directly_comparable FROM migration_audit ORDER BY ALL",
    "Migrations: quality (new minus old; a person decides)": "SELECT old_space_id, new_space_id, "
    "index_name, k, quality_scope, delta_mean_recall_at_k, delta_mrr, delta_mean_ndcg_at_k, "
    "mean_top_k_jaccard, quality_decision_required FROM migration_audit ORDER BY ALL",
}


def _space(connection: duckdb.DuckDBPyConnection, space: Row) -> Row:
    space_id = space["space_id"]
    [inventory] = query_rows(
        connection, "SELECT * FROM space_inventory WHERE space_id = ?", space_id
    )
    contract = {
        name: value
        for name, value in space.items()
        if name not in ("space_no", "status", "status_reason")
    }
    means = query_rows(
        connection, "SELECT * FROM metric_by_space WHERE space_id = ? ORDER BY k", space_id
    )
    return {
        "contract": contract,
        "inventory": _without(inventory, "space_id"),
        "evaluation": [_evaluation(connection, space_id, row) for row in means],
    }


def _evaluation(connection: duckdb.DuckDBPyConnection, space_id: str, means: Row) -> Row:
    k = means["k"]
    subgroups = query_rows(
        connection,
        "SELECT * FROM metric_by_subgroup WHERE space_id = ? AND k = ? ORDER BY subgroup",
        space_id,
        k,
    )
    return {
        **_without(means, "space_id", "index_name"),
        "subgroups": {
            row["subgroup"]: _without(row, "space_id", "index_name", "k", "subgroup")
            for row in subgroups
        },
        "details": query_rows(connection, DETAILS, space_id, k),
    }


DETAILS = """
WITH returned AS (
    SELECT
        case_id,
        list(item_id ORDER BY rank) AS result_ids,
        list(score ORDER BY rank) AS scores
    FROM query_results
    WHERE space_id = $1 AND rank <= $2
    GROUP BY case_id
)
SELECT
    c.case_id,
    c.query_item_id,
    coalesce(r.result_ids, []) AS result_ids,
    coalesce(r.scores, []) AS scores,
    m.recall_at_k,
    m.precision_at_k,
    m.reciprocal_rank,
    m.ndcg_at_k,
    c.subgroups
FROM metric_by_query AS m
JOIN base.cases AS c USING (case_id)
LEFT JOIN returned AS r USING (case_id)
WHERE m.space_id = $1 AND m.k = $2
ORDER BY c.case_no
"""


def _audits(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    audits = query_rows(
        connection,
        "SELECT a.* FROM migration_audit AS a JOIN migration_pairs AS p "
        "USING (old_space_id, new_space_id) ORDER BY p.pair_no, a.k",
    )
    for audit in audits:
        audit["details"] = query_rows(
            connection,
            "SELECT m.* FROM migration_by_query AS m JOIN base.cases USING (case_id) "
            "WHERE old_space_id = ? AND new_space_id = ? AND k = ? ORDER BY case_no",
            audit["old_space_id"],
            audit["new_space_id"],
            audit["k"],
        )
    return audits


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}
