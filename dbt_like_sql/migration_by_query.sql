-- One row: one query case at one cut-off k, compared between the two spaces of an audited pair, for
-- one index that ran in both. Each space is searched with its own query vector, over the documents
-- that quality_scope of migration_audit names.
-- top_k_jaccard = |old top k and new top k| / |old top k or new top k| (Jaccard 1901), as sets.
-- delta_x = x in the new space - x in the old space.
-- Undefined: top_k_jaccard is NULL where both top k are empty; a delta is NULL unless the measure is
-- defined in both spaces. Pairs with a space that was not executed have no rows.
WITH compared AS (
    SELECT
        pairs.*,
        old_indexes.index_name
    FROM migration_pairs AS pairs
    JOIN base.indexes AS old_indexes ON old_indexes.space_no = pairs.old_space_no
    JOIN base.indexes AS new_indexes
        ON new_indexes.space_no = pairs.new_space_no
        AND new_indexes.index_name = old_indexes.index_name
    WHERE pairs.quality_status = 'evaluated'
),
returned AS (
    SELECT compared.pair_no, ranked.index_name, ranked.case_no, ranked.item_no, ranked.rank, TRUE AS old
    FROM compared
    JOIN base.results AS ranked
        ON ranked.scope = compared.measures_scope
        AND ranked.space_no = compared.old_space_no
        AND ranked.index_name = compared.index_name
    UNION ALL
    SELECT compared.pair_no, ranked.index_name, ranked.case_no, ranked.item_no, ranked.rank, FALSE
    FROM compared
    JOIN base.results AS ranked
        ON ranked.scope = compared.measures_scope
        AND ranked.space_no = compared.new_space_no
        AND ranked.index_name = compared.index_name
),
merged AS (
    SELECT
        pair_no,
        index_name,
        case_no,
        item_no,
        min(rank) FILTER (WHERE old) AS old_rank,
        min(rank) FILTER (WHERE NOT old) AS new_rank
    FROM returned
    GROUP BY pair_no, index_name, case_no, item_no
),
overlap AS (
    SELECT
        merged.pair_no,
        merged.index_name,
        merged.case_no,
        cutoffs.k,
        count(*) FILTER (WHERE old_rank <= cutoffs.k AND new_rank <= cutoffs.k) AS in_both,
        count(*) AS in_either
    FROM merged
    JOIN base.evaluated_k AS cutoffs ON least(merged.old_rank, merged.new_rank) <= cutoffs.k
    GROUP BY merged.pair_no, merged.index_name, merged.case_no, cutoffs.k
)
SELECT
    compared.old_space_id,
    compared.new_space_id,
    compared.index_name,
    cases.case_id,
    old_measures.k,
    compared.quality_scope,
    overlap.in_both / overlap.in_either AS top_k_jaccard,
    old_measures.recall_at_k AS old_recall_at_k,
    new_measures.recall_at_k AS new_recall_at_k,
    new_measures.recall_at_k - old_measures.recall_at_k AS delta_recall_at_k,
    old_measures.reciprocal_rank AS old_reciprocal_rank,
    new_measures.reciprocal_rank AS new_reciprocal_rank,
    new_measures.reciprocal_rank - old_measures.reciprocal_rank AS delta_reciprocal_rank,
    old_measures.ndcg_at_k AS old_ndcg_at_k,
    new_measures.ndcg_at_k AS new_ndcg_at_k,
    new_measures.ndcg_at_k - old_measures.ndcg_at_k AS delta_ndcg_at_k
FROM compared
JOIN case_measures AS old_measures
    ON old_measures.scope = compared.measures_scope
    AND old_measures.space_no = compared.old_space_no
    AND old_measures.index_name = compared.index_name
JOIN case_measures AS new_measures
    ON new_measures.scope = compared.measures_scope
    AND new_measures.space_no = compared.new_space_no
    AND new_measures.index_name = compared.index_name
    AND new_measures.case_no = old_measures.case_no
    AND new_measures.k = old_measures.k
JOIN base.cases AS cases ON cases.case_no = old_measures.case_no
LEFT JOIN overlap
    ON overlap.pair_no = compared.pair_no
    AND overlap.index_name = compared.index_name
    AND overlap.case_no = old_measures.case_no
    AND overlap.k = old_measures.k
ORDER BY compared.pair_no, compared.index_name, old_measures.k, old_measures.case_no
