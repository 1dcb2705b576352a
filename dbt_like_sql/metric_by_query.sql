-- One row: the measures of one query case at one cut-off k, for one index over all documents of one
-- space. Formulas and sources: case_measures.
-- Undefined: NULL in all four measures where the case has no relevant document that its subject may
-- read (relevant_count = 0); such a case is never counted as 0.
SELECT
    spaces.space_id,
    measures.index_name,
    cases.case_id,
    measures.k,
    measures.relevant_count,
    measures.recall_at_k,
    measures.precision_at_k,
    measures.reciprocal_rank,
    measures.ndcg_at_k
FROM case_measures AS measures
JOIN base.spaces AS spaces USING (space_no)
JOIN base.cases AS cases USING (case_no)
WHERE measures.scope = 0
ORDER BY measures.space_no, measures.index_name, measures.k, measures.case_no
