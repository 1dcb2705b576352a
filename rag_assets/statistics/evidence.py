"""What a built database gives the statistics: measures by query, on their own and compared (audited
pairs, indexes against exact search, today against a pinned baseline)."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from rag_assets.statistics.comparisons import PAIRS, compare
from rag_assets.statistics.means import VALUES, mean_intervals

# Beyond this many queries there are statistics over all of them only, not for each subgroup: the
# intervals are narrow and their time is long.
MOST_QUERIES_BY_SUBGROUP = 5_000

_SUBGROUPS = """
subgroups AS (
    SELECT case_id, NULL AS subgroup FROM base.cases
    UNION ALL
    SELECT case_id, unnest(list_distinct(subgroups)) FROM base.cases
    WHERE (SELECT count(*) FROM base.cases) <= ?
)
"""
_PAIRS = f"""
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
{_SUBGROUPS}
SELECT comparison_id, subgroup, measure, k, case_id, old, new
FROM named
JOIN subgroups USING (case_id)
ORDER BY comparison_id, subgroup NULLS FIRST, measure, k, case_id
"""

_VALUES = f"""
WITH measured AS (
    SELECT space_id, index_name, case_id, k, 'ndcg_at_k' AS measure, ndcg_at_k AS value
    FROM metric_by_query
    UNION ALL
    SELECT space_id, index_name, case_id, k, 'reciprocal_rank', reciprocal_rank FROM metric_by_query
    UNION ALL
    SELECT space_id, index_name, case_id, k, 'recall_at_k', recall_at_k FROM metric_by_query
    UNION ALL
    SELECT space_id, index_name, case_id, k, 'precision_at_k', precision_at_k FROM metric_by_query
    UNION ALL
    SELECT space_id, index_name, case_id, k, 'ann_recall_at_k', ann_recall_at_k
    FROM ann_recall_by_query
),
{_SUBGROUPS}
SELECT
    space_no, index_name, subgroup, measure, k, count(*) AS query_count,
    coalesce(list(value) FILTER (WHERE value IS NOT NULL), []) AS values
FROM measured
JOIN subgroups USING (case_id)
JOIN base.spaces USING (space_id)
GROUP BY space_no, index_name, subgroup, measure, k
ORDER BY space_no, index_name, subgroup NULLS FIRST, measure, k
"""


def migration_comparison(old: str, new: str, index_name: str) -> str:
    """The comparison_id of an audited pair under one index."""
    return f"migration {old} to {new}, {index_name}"


def index_comparison(space_id: str, index_name: str) -> str:
    """The comparison_id of an index beside exact search in the same space."""
    return f"index {index_name} against exact, {space_id}"


def compare_tables(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Rows of COMPARISONS for every audited pair, every index beside exact search, and every space
    and index that the pinned baseline holds too."""
    pairs = connection.sql(_PAIRS, params=[MOST_QUERIES_BY_SUBGROUP]).to_arrow_table()
    return compare(pairs.select(PAIRS.names).cast(PAIRS))


def interval_tables(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Rows of INTERVALS for every measure of every index in every space."""
    values = connection.sql(_VALUES, params=[MOST_QUERIES_BY_SUBGROUP]).to_arrow_table()
    return mean_intervals(values.cast(VALUES))
