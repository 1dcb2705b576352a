-- One row: mean measures over the cases of one subgroup, at one cut-off k, for one index over all
-- documents of one space. A case counts once in each subgroup that it names; a case without
-- subgroups counts in none.
-- mean_x = sum of x over defined cases / defined_count; mrr is the mean of reciprocal_rank.
-- Undefined: as in metric_by_space.
WITH members AS (
    SELECT case_no, unnest(list_distinct(subgroups)) AS subgroup
    FROM base.cases
)
SELECT
    spaces.space_id,
    measures.index_name,
    members.subgroup,
    measures.k,
    count(*) AS query_count,
    count(measures.recall_at_k) AS defined_count,
    avg(measures.recall_at_k ORDER BY measures.case_no) AS mean_recall_at_k,
    avg(measures.precision_at_k ORDER BY measures.case_no) AS mean_precision_at_k,
    avg(measures.reciprocal_rank ORDER BY measures.case_no) AS mrr,
    avg(measures.ndcg_at_k ORDER BY measures.case_no) AS mean_ndcg_at_k
FROM case_measures AS measures
JOIN members USING (case_no)
JOIN base.spaces AS spaces USING (space_no)
WHERE measures.scope = 0
GROUP BY measures.space_no, spaces.space_id, measures.index_name, members.subgroup, measures.k
ORDER BY measures.space_no, measures.index_name, members.subgroup, measures.k
