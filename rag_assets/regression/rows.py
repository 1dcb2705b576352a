"""The tables of the regression gates: queries as they were measured, and what each gate says."""

from __future__ import annotations

import pyarrow as pa

MEASURES = ("recall_at_k", "precision_at_k", "reciprocal_rank", "ndcg_at_k")

# One row: one query of one space, index and cut-off. Measures: 0 to 1, NULL where undefined.
BY_QUERY = pa.schema(
    [
        ("space_id", pa.string()),
        ("index_name", pa.string()),
        ("case_id", pa.string()),
        ("k", pa.int32()),
        *((measure, pa.float64()) for measure in MEASURES),
        ("subgroups", pa.list_(pa.string())),
    ]
)
# One row: one gate, in declared order. dbt_like_sql/regression_gates.sql explains the columns.
GATES = pa.schema(
    [
        ("gate_no", pa.int32()),
        ("space_id", pa.string()),
        ("index_name", pa.string()),
        ("subgroup", pa.string()),
        ("measure", pa.string()),
        ("k", pa.int32()),
        ("rule", pa.string()),
        ("bound", pa.float64()),
        ("value", pa.float64()),
        ("baseline_value", pa.float64()),
        ("difference", pa.float64()),
        ("defined_count", pa.int32()),
        ("changed_count", pa.int32()),
        ("p_value", pa.float64()),
        ("p_adjusted", pa.float64()),
        ("status", pa.string()),
        ("sentence", pa.string()),
        ("worse_queries", pa.list_(pa.string())),
    ]
)
REGRESSION_GATES = "regression_gates"  # the table, and the check on it
PASS, FAIL, INCONCLUSIVE, NOT_EXECUTED = "pass", "fail", "inconclusive", "not_executed"
