-- One row: one subgroup compared between the two spaces of an audited pair, for one index that ran in
-- both, at one cut-off k: what an average over all queries may hide. Deltas are means of new - old over
-- the defined_count cases that are defined in both spaces; better and worse count the cases whose
-- nDCG@k rose or fell. A case belongs to each of its subgroups.
-- Undefined: a delta over no defined case is NULL; mean_top_k_jaccard is over cases where either space
-- returned a document. Sums run in order of case_id, so that they are equal in any run.
WITH grouped AS (
    SELECT compared.*, unnest(list_distinct(cases.subgroups)) AS subgroup
    FROM migration_by_query AS compared
    JOIN base.cases AS cases USING (case_id)
)
SELECT
    old_space_id,
    new_space_id,
    index_name,
    subgroup,
    k,
    count(*) AS query_count,
    count(delta_ndcg_at_k) AS defined_count,
    avg(old_ndcg_at_k ORDER BY case_id) AS old_mean_ndcg_at_k,
    avg(new_ndcg_at_k ORDER BY case_id) AS new_mean_ndcg_at_k,
    avg(delta_recall_at_k ORDER BY case_id) AS delta_mean_recall_at_k,
    avg(delta_reciprocal_rank ORDER BY case_id) AS delta_mrr,
    avg(delta_ndcg_at_k ORDER BY case_id) AS delta_mean_ndcg_at_k,
    count(*) FILTER (WHERE delta_ndcg_at_k > 0) AS better,
    count(*) FILTER (WHERE delta_ndcg_at_k < 0) AS worse,
    avg(top_k_jaccard ORDER BY case_id) AS mean_top_k_jaccard
FROM grouped
GROUP BY old_space_id, new_space_id, index_name, subgroup, k
ORDER BY old_space_id, new_space_id, index_name, k, delta_mean_ndcg_at_k NULLS LAST, subgroup
