-- One row: one mean measure of one index in one space at one cut-off k, over all queries (subgroup is
-- NULL) or one subgroup: in this evaluation and in the one before.
-- difference = latest_value - previous_value, of the means as each evaluation published them; whether
-- it is more than chance is what comparison_statistics and regression_gates say.
-- Undefined: a value is NULL where the mean was undefined or not measured; a difference needs both.
WITH measured AS (
    SELECT
        evaluations.is_latest,
        evaluations.is_previous,
        history.space_id,
        history.index_name,
        history.subgroup,
        history.k,
        unnest(
            [
                {'measure': 'recall_at_k', 'mean_value': history.mean_recall_at_k},
                {'measure': 'precision_at_k', 'mean_value': history.mean_precision_at_k},
                {'measure': 'reciprocal_rank', 'mean_value': history.mrr},
                {'measure': 'ndcg_at_k', 'mean_value': history.mean_ndcg_at_k}
            ],
            recursive := TRUE
        )
    FROM metric_history AS history
    JOIN base.evaluations AS evaluations USING (evaluation_id)
    WHERE evaluations.is_latest OR evaluations.is_previous
),
compared AS (
    SELECT
        space_id,
        index_name,
        subgroup,
        measure,
        k,
        max(mean_value) FILTER (WHERE is_latest) AS latest_value,
        max(mean_value) FILTER (WHERE is_previous) AS previous_value
    FROM measured
    GROUP BY space_id, index_name, subgroup, measure, k
)
SELECT *, latest_value - previous_value AS difference
FROM compared
ORDER BY space_id, index_name, subgroup NULLS FIRST, measure, k
