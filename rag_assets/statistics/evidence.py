"""The comparisons that a built database holds: audited pairs, indexes against exact search, and
today against a pinned baseline."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from rag_assets.statistics.comparisons import PAIRS, compare

# Beyond this many queries a comparison is made over all of them only, not for each subgroup: its
# intervals are narrow and its time is long.
MOST_QUERIES_BY_SUBGROUP = 5_000

_PAIRS = """
WITH measured AS (
    SELECT
        'migration ' || old_space_id || ' to ' || new_space_id || ', ' || index_name
            AS comparison_id,
        case_id, k,
        old_recall_at_k, new_recall_at_k,
        old_reciprocal_rank, new_reciprocal_rank,
        old_ndcg_at_k, new_ndcg_at_k
    FROM migration_by_query
    UNION ALL
    SELECT
        'index ' || approximate.index_name || ' against exact, ' || approximate.space_id,
        approximate.case_id, approximate.k,
        exact.recall_at_k, approximate.recall_at_k,
        exact.reciprocal_rank, approximate.reciprocal_rank,
        exact.ndcg_at_k, approximate.ndcg_at_k
    FROM metric_by_query AS approximate
    JOIN metric_by_query AS exact USING (space_id, case_id, k)
    WHERE exact.index_name = 'exact' AND approximate.index_name <> 'exact'
    UNION ALL
    SELECT
        'today against baseline ' || pinned.evaluation_id || ', ' || today.space_id || ', '
            || today.index_name,
        today.case_id, today.k,
        pinned_query.recall_at_k, today.recall_at_k,
        pinned_query.reciprocal_rank, today.reciprocal_rank,
        pinned_query.ndcg_at_k, today.ndcg_at_k
    FROM metric_by_query AS today
    JOIN base.baseline_by_query AS pinned_query USING (space_id, index_name, case_id, k)
    CROSS JOIN base.baseline AS pinned
),
named AS (
    SELECT comparison_id, 'ndcg_at_k' AS measure, k, case_id,
        old_ndcg_at_k AS old, new_ndcg_at_k AS new FROM measured
    UNION ALL
    SELECT comparison_id, 'reciprocal_rank', k, case_id,
        old_reciprocal_rank, new_reciprocal_rank FROM measured
    UNION ALL
    SELECT comparison_id, 'recall_at_k', k, case_id, old_recall_at_k, new_recall_at_k FROM measured
),
subgroups AS (
    SELECT case_id, NULL AS subgroup FROM base.cases
    UNION ALL
    SELECT case_id, unnest(subgroups) FROM base.cases
    WHERE (SELECT count(*) FROM base.cases) <= ?
)
SELECT comparison_id, subgroup, measure, k, case_id, old, new
FROM named
JOIN subgroups USING (case_id)
ORDER BY comparison_id, subgroup NULLS FIRST, measure, k, case_id
"""


def compare_tables(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Rows of COMPARISONS for every audited pair, every index beside exact search, and every space
    and index that the pinned baseline holds too."""
    pairs = connection.sql(_PAIRS, params=[MOST_QUERIES_BY_SUBGROUP]).to_arrow_table()
    return compare(pairs.select(PAIRS.names).cast(PAIRS))
