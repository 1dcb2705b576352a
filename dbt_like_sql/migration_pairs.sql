-- One row: one audited pair of spaces, and on which documents its quality may be compared.
-- A document of a space is an item in the space's document_role.
-- quality_scope 'all_documents': both spaces hold the same documents; measures come from the searches
-- over all of them (measures_scope 0). 'shared_documents': they hold different documents; measures
-- come from searches over the documents that both hold (measures_scope = pair_no).
-- quality_status is 'not_executed', with a reason, where either space was not executed or where the
-- shared documents were not searched; quality_scope is then NULL.
-- inventories_known is false where a space was not executed and holds no items: nothing to compare.
WITH documents AS (
    SELECT held.space_no, held.item_no
    FROM base.space_items AS held
    JOIN base.spaces AS spaces USING (space_no)
    WHERE held.role = spaces.document_role
),
item_counts AS (
    SELECT space_no, count(*) AS item_count
    FROM base.space_items
    GROUP BY space_no
),
document_counts AS (
    SELECT space_no, count(*) AS document_count
    FROM documents
    GROUP BY space_no
),
shared_counts AS (
    SELECT pairs.pair_no, count(*) AS document_count
    FROM base.audited_pairs AS pairs
    JOIN documents AS old_documents ON old_documents.space_no = pairs.old_space_no
    JOIN documents AS new_documents
        ON new_documents.space_no = pairs.new_space_no
        AND new_documents.item_no = old_documents.item_no
    GROUP BY pairs.pair_no
),
compared AS (
    SELECT
        pairs.pair_no,
        pairs.old_space_no,
        pairs.new_space_no,
        old_spaces.space_id AS old_space_id,
        new_spaces.space_id AS new_space_id,
        old_spaces.contract_signature = new_spaces.contract_signature
            AS vectors_directly_comparable,
        (old_spaces.status = 'evaluated' OR old_items.item_count IS NOT NULL)
            AND (new_spaces.status = 'evaluated' OR new_items.item_count IS NOT NULL)
            AS inventories_known,
        coalesce(shared.document_count, 0) AS shared_document_count,
        coalesce(shared.document_count, 0) = coalesce(old_documents.document_count, 0)
            AND coalesce(shared.document_count, 0) = coalesce(new_documents.document_count, 0)
            AS same_documents,
        pairs.pair_no IN (SELECT scope FROM base.results WHERE scope > 0) AS shared_searched,
        nullif(concat_ws(
            '; ',
            CASE WHEN old_spaces.status <> 'evaluated' THEN
                old_spaces.space_id || ': ' || coalesce(old_spaces.status_reason, 'not executed')
            END,
            CASE WHEN new_spaces.status <> 'evaluated' THEN
                new_spaces.space_id || ': ' || coalesce(new_spaces.status_reason, 'not executed')
            END
        ), '') AS not_executed_reason
    FROM base.audited_pairs AS pairs
    JOIN base.spaces AS old_spaces ON old_spaces.space_no = pairs.old_space_no
    JOIN base.spaces AS new_spaces ON new_spaces.space_no = pairs.new_space_no
    LEFT JOIN item_counts AS old_items ON old_items.space_no = pairs.old_space_no
    LEFT JOIN item_counts AS new_items ON new_items.space_no = pairs.new_space_no
    LEFT JOIN document_counts AS old_documents ON old_documents.space_no = pairs.old_space_no
    LEFT JOIN document_counts AS new_documents ON new_documents.space_no = pairs.new_space_no
    LEFT JOIN shared_counts AS shared USING (pair_no)
),
judged_pairs AS (
    SELECT
        *,
        CASE
            WHEN not_executed_reason IS NOT NULL THEN not_executed_reason
            WHEN same_documents OR shared_searched THEN NULL
            ELSE 'the spaces hold different documents and the shared ones gave no result'
        END AS quality_reason
    FROM compared
)
SELECT
    pair_no,
    old_space_no,
    new_space_no,
    old_space_id,
    new_space_id,
    vectors_directly_comparable,
    inventories_known,
    shared_document_count,
    CASE WHEN quality_reason IS NULL THEN 'evaluated' ELSE 'not_executed' END AS quality_status,
    quality_reason,
    CASE
        WHEN quality_reason IS NOT NULL THEN NULL
        WHEN same_documents THEN 'all_documents'
        ELSE 'shared_documents'
    END AS quality_scope,
    CASE
        WHEN quality_reason IS NOT NULL THEN NULL
        WHEN same_documents THEN CAST(0 AS SMALLINT)
        ELSE pair_no
    END AS measures_scope
FROM judged_pairs
ORDER BY pair_no
