-- One row: one of the ten query cases that changed most in one audited pair, for one index that ran
-- in both spaces, at one cut-off k. change_rank 1 has the largest fall or rise of nDCG@k; equal ones
-- are ordered by the overlap of their results, the smallest first, then by case id.
-- old_results and new_results list the item ids in order of rank, each with its grade in brackets
-- where it was judged. Cases without a defined change come last, by overlap alone.
-- The results are those over all documents of each space; where the two hold different documents
-- (quality_scope), the measures are over the documents that both hold.
WITH ordered AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY old_space_id, new_space_id, index_name, k
            ORDER BY abs(delta_ndcg_at_k) DESC NULLS LAST, top_k_jaccard NULLS LAST, case_id
        ) AS change_rank
    FROM migration_by_query
),
changed AS (
    SELECT * FROM ordered WHERE change_rank <= 10
),
listed AS (
    SELECT
        changed.old_space_id,
        changed.new_space_id,
        changed.index_name,
        changed.k,
        changed.case_id,
        list(
            ranked.item_id || coalesce(' [' || judged.grade || ']', '') ORDER BY ranked.rank
        ) FILTER (WHERE ranked.space_id = changed.old_space_id) AS old_results,
        list(
            ranked.item_id || coalesce(' [' || judged.grade || ']', '') ORDER BY ranked.rank
        ) FILTER (WHERE ranked.space_id = changed.new_space_id) AS new_results
    FROM changed
    JOIN query_results AS ranked
        ON ranked.case_id = changed.case_id
        AND ranked.index_name = changed.index_name
        AND ranked.rank <= changed.k
        AND ranked.space_id IN (changed.old_space_id, changed.new_space_id)
    LEFT JOIN qrels AS judged
        ON judged.case_id = ranked.case_id AND judged.item_id = ranked.item_id
    GROUP BY ALL
)
SELECT
    changed.old_space_id,
    changed.new_space_id,
    changed.index_name,
    changed.k,
    changed.change_rank,
    changed.case_id,
    questions.text AS query_text,
    changed.delta_ndcg_at_k,
    changed.delta_reciprocal_rank,
    changed.top_k_jaccard,
    coalesce(listed.old_results, []) AS old_results,
    coalesce(listed.new_results, []) AS new_results
FROM changed
JOIN base.cases AS cases USING (case_id)
JOIN base.items AS questions ON questions.item_no = cases.query_item_no
LEFT JOIN listed
    ON listed.old_space_id = changed.old_space_id
    AND listed.new_space_id = changed.new_space_id
    AND listed.index_name = changed.index_name
    AND listed.k = changed.k
    AND listed.case_id = changed.case_id
ORDER BY changed.old_space_id, changed.new_space_id, changed.index_name, changed.k,
    changed.change_rank
