-- One row: mean measures of one index in one space at one cut-off k, over all queries (subgroup is
-- NULL) or one subgroup, in one evaluation, this one included. Columns as in metric_by_space and
-- metric_by_subgroup. evaluated_at is UTC.
-- Undefined: as in metric_by_space; a mean that an older version did not record is NULL.
WITH measured AS (
    SELECT * FROM base.history_metrics
    UNION ALL BY NAME
    SELECT latest.evaluation_id, NULL AS subgroup, means.*
    FROM metric_by_space AS means
    CROSS JOIN (SELECT evaluation_id FROM base.evaluations WHERE is_latest) AS latest
    UNION ALL BY NAME
    SELECT latest.evaluation_id, means.*
    FROM metric_by_subgroup AS means
    CROSS JOIN (SELECT evaluation_id FROM base.evaluations WHERE is_latest) AS latest
)
SELECT
    measured.evaluation_id,
    evaluations.evaluated_at,
    measured.space_id,
    measured.index_name,
    measured.subgroup,
    measured.k,
    measured.query_count,
    measured.defined_count,
    measured.mean_recall_at_k,
    measured.mean_precision_at_k,
    measured.mrr,
    measured.mean_ndcg_at_k
FROM measured
JOIN base.evaluations AS evaluations USING (evaluation_id)
ORDER BY
    evaluations.evaluated_at,
    measured.space_id,
    measured.index_name,
    measured.subgroup NULLS FIRST,
    measured.k
