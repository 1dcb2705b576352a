-- One row: one mean measure of one index in one space at one cut-off k, over all queries (subgroup is
-- NULL) or one subgroup: in this evaluation, in the one before, and in the pinned baseline.
-- difference = latest_value - previous_value and baseline_difference = latest_value - baseline_value,
-- of the means as each evaluation published them, over its own queries; whether a difference is more
-- than chance is what comparison_statistics and regression_gates say, over the queries of both.
-- Undefined: a value is NULL where the mean was undefined or not measured, or where there is no such
-- evaluation or baseline; a difference needs both of its values.
WITH pinned AS (
    SELECT
        space_id,
        index_name,
        unnest(list_concat([NULL], list_distinct(subgroups))) AS subgroup,
        k,
        case_id,
        recall_at_k,
        precision_at_k,
        reciprocal_rank,
        ndcg_at_k
    FROM base.baseline_by_query
),
means AS (
    SELECT
        CASE WHEN evaluations.is_latest THEN 'latest' ELSE 'previous' END AS source,
        history.space_id,
        history.index_name,
        history.subgroup,
        history.k,
        history.mean_recall_at_k,
        history.mean_precision_at_k,
        history.mrr,
        history.mean_ndcg_at_k
    FROM metric_history AS history
    JOIN base.evaluations AS evaluations USING (evaluation_id)
    WHERE evaluations.is_latest OR evaluations.is_previous
    UNION ALL
    SELECT
        'baseline',
        space_id,
        index_name,
        subgroup,
        k,
        avg(recall_at_k ORDER BY case_id),
        avg(precision_at_k ORDER BY case_id),
        avg(reciprocal_rank ORDER BY case_id),
        avg(ndcg_at_k ORDER BY case_id)
    FROM pinned
    GROUP BY space_id, index_name, subgroup, k
),
measured AS (
    SELECT
        source,
        space_id,
        index_name,
        subgroup,
        k,
        unnest(
            [
                {'measure': 'recall_at_k', 'mean_value': mean_recall_at_k},
                {'measure': 'precision_at_k', 'mean_value': mean_precision_at_k},
                {'measure': 'reciprocal_rank', 'mean_value': mrr},
                {'measure': 'ndcg_at_k', 'mean_value': mean_ndcg_at_k}
            ],
            recursive := TRUE
        )
    FROM means
),
compared AS (
    SELECT
        space_id,
        index_name,
        subgroup,
        measure,
        k,
        max(mean_value) FILTER (WHERE source = 'latest') AS latest_value,
        max(mean_value) FILTER (WHERE source = 'previous') AS previous_value,
        max(mean_value) FILTER (WHERE source = 'baseline') AS baseline_value
    FROM measured
    GROUP BY space_id, index_name, subgroup, measure, k
)
SELECT
    space_id,
    index_name,
    subgroup,
    measure,
    k,
    latest_value,
    previous_value,
    latest_value - previous_value AS difference,
    baseline_value,
    latest_value - baseline_value AS baseline_difference
FROM compared
ORDER BY space_id, index_name, subgroup NULLS FIRST, measure, k
