-- One row: ANN recall of one approximate index over the cases of one subgroup in one space, at one
-- cut-off k, as means over the cases where it is defined (formulas: ann_recall_by_query). A case
-- belongs to each of its subgroups. short_cases counts cases with fewer results than exact search
-- has; mean_ndcg_cost is the mean of exact nDCG@k minus this index's, over the ndcg_defined_count
-- cases where both are defined. Undefined: a mean over no case is NULL. Sums run in order of
-- case_id, so that they are equal in any run.
WITH grouped AS (
    SELECT recalled.*, unnest(list_distinct(cases.subgroups)) AS subgroup
    FROM ann_recall_by_query AS recalled
    JOIN base.cases AS cases USING (case_id)
)
SELECT
    space_id,
    index_name,
    subgroup,
    k,
    count(*) AS query_count,
    count(ann_recall_at_k) AS defined_count,
    count(*) FILTER (WHERE status = 'empty_eligible') AS empty_eligible_count,
    count(*) FILTER (WHERE status = 'not_executed') AS not_executed_count,
    avg(ann_recall_at_k ORDER BY case_id) AS mean_ann_recall_at_k,
    min(ann_recall_at_k) AS min_ann_recall_at_k,
    avg(tie_aware_ann_recall_at_k ORDER BY case_id) AS mean_tie_aware_ann_recall_at_k,
    count(*) FILTER (WHERE short_results > 0) AS short_cases,
    avg(nprobe ORDER BY case_id) AS mean_nprobe,
    count(ndcg_cost) AS ndcg_defined_count,
    avg(ndcg_cost ORDER BY case_id) AS mean_ndcg_cost
FROM grouped
GROUP BY space_id, index_name, subgroup, k
ORDER BY space_id, index_name, subgroup, k
