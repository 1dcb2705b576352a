"""What a built database says of every query, as the gates and a baseline take it."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from rag_assets.regression.looking import Today
from rag_assets.regression.rows import BY_QUERY, MEASURES

_ROWS = f"""
SELECT space_id, index_name, case_id, k, {", ".join(MEASURES)}, subgroups
FROM metric_by_query JOIN query_cases USING (case_id)
ORDER BY space_id, index_name, k, case_id
"""
_REASONS = """
SELECT space_id, NULL AS index_name, status_reason FROM spaces WHERE status = 'not_executed'
UNION ALL
SELECT space_id, index_name, builds.status_reason
FROM base.index_builds AS builds JOIN base.spaces USING (space_no)
WHERE builds.status = 'not_executed'
"""


def measured_queries(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Rows of BY_QUERY: every query under every index and k, in order of space, index, k and id."""
    return connection.sql(_ROWS).to_arrow_table().cast(BY_QUERY)


def measured_today(connection: duckdb.DuckDBPyConnection) -> Today:
    """The same, with the reasons for what was not executed."""
    reasons = {
        (space_id, index_name): f"it was not executed: {reason}"
        for space_id, index_name, reason in connection.sql(_REASONS).fetchall()
    }
    return Today(measured_queries(connection), reasons)
