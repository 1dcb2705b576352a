-- One row: the audit of one migration (old space to new space), for one index that ran in both, at one
-- cut-off k.
-- inventory_match: both spaces hold the same item ids, of every role.
-- canonical_match: the items that both hold agree in role, text, ACL, source revision and hash.
-- mechanical_gates_pass = inventory_match AND canonical_match. A gate that could not be evaluated is
-- NULL, and has not passed. Passing decides nothing about quality: quality_decision_required is
-- always true.
-- only_old, only_new, canonical_mismatches list at most 1000 item ids each; their _count columns count
-- all of them, and migration_differences holds every one.
-- vectors_directly_comparable: the two contracts have equal signatures.
-- delta_mean_x = mean of (new - old) over the defined_count cases that are defined in both spaces;
-- mean_top_k_jaccard is over the jaccard_count cases where either space returned a document.
-- quality_scope says over which documents (see migration_pairs); quality_note says it in words.
-- Undefined: with no defined case a delta is NULL. Where status is 'not_executed' all quality columns
-- are NULL and status_reason says why; index_name is then 'exact' if no index ran in both spaces.
-- Sums run in order of case_id, so that they are equal in any run.
WITH differing_items AS (
    SELECT
        old_space_id,
        new_space_id,
        item_id,
        bool_or(field = 'presence' AND old_value = 'present') AS is_only_old,
        bool_or(field = 'presence' AND new_value = 'present') AS is_only_new,
        bool_or(field <> 'presence') AS is_mismatch
    FROM migration_differences
    GROUP BY old_space_id, new_space_id, item_id
),
differences AS (
    SELECT
        old_space_id,
        new_space_id,
        list(item_id ORDER BY item_id) FILTER (WHERE is_only_old) AS only_old,
        list(item_id ORDER BY item_id) FILTER (WHERE is_only_new) AS only_new,
        list(item_id ORDER BY item_id) FILTER (WHERE is_mismatch) AS canonical_mismatches
    FROM differing_items
    GROUP BY old_space_id, new_space_id
),
gates AS (
    SELECT
        pairs.*,
        coalesce(differences.only_old, []) AS only_old,
        coalesce(differences.only_new, []) AS only_new,
        coalesce(differences.canonical_mismatches, []) AS canonical_mismatches,
        differences.only_old IS NULL AND differences.only_new IS NULL AS inventory_match,
        differences.canonical_mismatches IS NULL AS canonical_match
    FROM migration_pairs AS pairs
    LEFT JOIN differences USING (old_space_id, new_space_id)
),
shared_indexes AS (
    SELECT pairs.pair_no, old_indexes.index_name
    FROM migration_pairs AS pairs
    JOIN base.indexes AS old_indexes ON old_indexes.space_no = pairs.old_space_no
    JOIN base.indexes AS new_indexes
        ON new_indexes.space_no = pairs.new_space_no
        AND new_indexes.index_name = old_indexes.index_name
),
audited AS (
    SELECT
        gates.*,
        coalesce(shared_indexes.index_name, 'exact') AS audited_index,
        coalesce(
            gates.quality_reason,
            CASE WHEN shared_indexes.index_name IS NULL THEN 'no index ran in both spaces' END
        ) AS audit_reason
    FROM gates
    LEFT JOIN shared_indexes USING (pair_no)
),
quality AS (
    SELECT
        old_space_id,
        new_space_id,
        index_name,
        k,
        count(*) AS query_count,
        count(delta_recall_at_k) AS defined_count,
        count(top_k_jaccard) AS jaccard_count,
        avg(delta_recall_at_k ORDER BY case_id) AS delta_mean_recall_at_k,
        avg(delta_reciprocal_rank ORDER BY case_id) AS delta_mrr,
        avg(delta_ndcg_at_k ORDER BY case_id) AS delta_mean_ndcg_at_k,
        avg(top_k_jaccard ORDER BY case_id) AS mean_top_k_jaccard
    FROM migration_by_query
    GROUP BY old_space_id, new_space_id, index_name, k
)
SELECT
    audited.old_space_id,
    audited.new_space_id,
    audited.audited_index AS index_name,
    cutoffs.k,
    CASE WHEN audited.audit_reason IS NULL THEN 'evaluated' ELSE 'not_executed' END AS status,
    audited.audit_reason AS status_reason,
    audited.vectors_directly_comparable,
    CASE WHEN audited.inventories_known THEN audited.inventory_match END AS inventory_match,
    CASE WHEN audited.inventories_known THEN audited.canonical_match END AS canonical_match,
    CASE WHEN audited.inventories_known THEN audited.only_old[:1000] END AS only_old,
    CASE WHEN audited.inventories_known THEN len(audited.only_old) END AS only_old_count,
    CASE WHEN audited.inventories_known THEN audited.only_new[:1000] END AS only_new,
    CASE WHEN audited.inventories_known THEN len(audited.only_new) END AS only_new_count,
    CASE WHEN audited.inventories_known THEN audited.canonical_mismatches[:1000] END
        AS canonical_mismatches,
    CASE WHEN audited.inventories_known THEN len(audited.canonical_mismatches) END
        AS canonical_mismatch_count,
    audited.inventories_known AND audited.inventory_match AND audited.canonical_match
        AS mechanical_gates_pass,
    CASE WHEN audited.audit_reason IS NULL THEN audited.quality_scope END AS quality_scope,
    quality.query_count,
    quality.defined_count,
    quality.jaccard_count,
    quality.delta_mean_recall_at_k,
    quality.delta_mrr,
    quality.delta_mean_ndcg_at_k,
    quality.mean_top_k_jaccard,
    TRUE AS quality_decision_required,
    CASE
        WHEN NOT audited.inventories_known THEN 'The mechanical gates could not be evaluated. '
        WHEN audited.inventory_match AND audited.canonical_match THEN 'The mechanical gates passed. '
        ELSE 'The mechanical gates failed. '
    END || CASE
        WHEN audited.audit_reason IS NOT NULL
            THEN 'Quality was not compared: ' || audited.audit_reason || '.'
        WHEN audited.quality_scope = 'shared_documents'
            THEN 'The spaces hold different documents; quality is compared over the '
                || audited.shared_document_count || ' documents that both hold.'
        ELSE 'Both spaces hold the same documents; quality is compared over all of them.'
    END AS quality_note
FROM audited
CROSS JOIN base.evaluated_k AS cutoffs
LEFT JOIN quality
    ON quality.old_space_id = audited.old_space_id
    AND quality.new_space_id = audited.new_space_id
    AND quality.index_name = audited.audited_index
    AND quality.k = cutoffs.k
ORDER BY audited.pair_no, audited.audited_index, cutoffs.k
