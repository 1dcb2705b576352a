-- One row: mean measures at one cut-off k, for one index over all documents of one space.
-- mean_x = sum of x over defined cases / defined_count; mrr is the mean of reciprocal_rank.
-- Undefined: cases whose measures are NULL count in query_count and not in defined_count; with no
-- defined case the means are NULL. Sums run in case order, so that they are equal in any run.
SELECT
    spaces.space_id,
    measures.index_name,
    measures.k,
    count(*) AS query_count,
    count(measures.recall_at_k) AS defined_count,
    avg(measures.recall_at_k ORDER BY measures.case_no) AS mean_recall_at_k,
    avg(measures.precision_at_k ORDER BY measures.case_no) AS mean_precision_at_k,
    avg(measures.reciprocal_rank ORDER BY measures.case_no) AS mrr,
    avg(measures.ndcg_at_k ORDER BY measures.case_no) AS mean_ndcg_at_k
FROM case_measures AS measures
JOIN base.spaces AS spaces USING (space_no)
WHERE measures.scope = 0
GROUP BY measures.space_no, spaces.space_id, measures.index_name, measures.k
ORDER BY measures.space_no, measures.index_name, measures.k
