-- One row: the audit of one migration, for one index at one cut-off k, in one evaluation, this one
-- included. Columns as in migration_audit, lists of ids as their counts. evaluated_at is UTC.
-- Undefined: as in migration_audit.
WITH audited AS (
    SELECT * FROM base.history_audits
    UNION ALL BY NAME
    SELECT
        latest.evaluation_id,
        audit.old_space_id,
        audit.new_space_id,
        audit.index_name,
        audit.k,
        audit.status,
        audit.status_reason,
        audit.vectors_directly_comparable,
        audit.inventory_match,
        audit.canonical_match,
        audit.only_old_count,
        audit.only_new_count,
        audit.canonical_mismatch_count,
        audit.mechanical_gates_pass,
        audit.defined_count,
        audit.delta_mean_recall_at_k,
        audit.delta_mrr,
        audit.delta_mean_ndcg_at_k,
        audit.mean_top_k_jaccard,
        audit.quality_decision_required
    FROM migration_audit AS audit
    CROSS JOIN (SELECT evaluation_id FROM base.evaluations WHERE is_latest) AS latest
)
SELECT evaluations.evaluated_at, audited.*
FROM audited
JOIN base.evaluations AS evaluations USING (evaluation_id)
ORDER BY
    evaluations.evaluated_at,
    audited.old_space_id,
    audited.new_space_id,
    audited.index_name,
    audited.k
