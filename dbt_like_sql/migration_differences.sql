-- One row: one field of one item in which the two spaces of an audited pair disagree.
-- field 'presence': only one of the spaces holds the item ('present' against 'absent').
-- Other fields are compared for items that both hold: role, text, acl (as a set), source_revision,
-- content_sha256. A space stores the hash of a text and not the text, so 'text' differs exactly where
-- 'content_sha256' does; its values are given where they are the canonical text, and NULL otherwise.
-- A pair in which either space was not executed and holds no items has no rows: nothing was compared.
WITH held AS (
    SELECT
        held.space_no,
        held.item_no,
        items.item_id,
        held.role,
        CASE WHEN held.content_sha256 = items.content_sha256 THEN items.text END AS text,
        list_sort(list_distinct(held.acl)) AS acl,
        held.source_revision,
        held.content_sha256
    FROM base.space_items AS held
    JOIN base.items AS items USING (item_no)
),
comparable_pairs AS (
    SELECT pair_no, old_space_no, new_space_no, old_space_id, new_space_id
    FROM migration_pairs
    WHERE inventories_known
),
old_items AS (
    SELECT pairs.pair_no, held.*
    FROM comparable_pairs AS pairs
    JOIN held ON held.space_no = pairs.old_space_no
),
new_items AS (
    SELECT pairs.pair_no, held.*
    FROM comparable_pairs AS pairs
    JOIN held ON held.space_no = pairs.new_space_no
),
present_once AS (
    SELECT pair_no, item_no, item_id, 'present' AS old_value, 'absent' AS new_value
    FROM old_items
    ANTI JOIN new_items USING (pair_no, item_no)
    UNION ALL
    SELECT pair_no, item_no, item_id, 'absent', 'present'
    FROM new_items
    ANTI JOIN old_items USING (pair_no, item_no)
),
disagreeing AS (
    SELECT
        pair_no,
        item_no,
        old_items.item_id,
        old_items.role AS old_role,
        new_items.role AS new_role,
        old_items.text AS old_text,
        new_items.text AS new_text,
        old_items.acl AS old_acl,
        new_items.acl AS new_acl,
        old_items.source_revision AS old_revision,
        new_items.source_revision AS new_revision,
        old_items.content_sha256 AS old_sha256,
        new_items.content_sha256 AS new_sha256
    FROM old_items
    JOIN new_items USING (pair_no, item_no)
    WHERE (old_items.role, old_items.acl, old_items.source_revision, old_items.content_sha256)
        IS DISTINCT FROM
        (new_items.role, new_items.acl, new_items.source_revision, new_items.content_sha256)
),
differing_fields AS (
    SELECT pair_no, item_no, item_id, 'presence' AS field, old_value, new_value
    FROM present_once
    UNION ALL
    SELECT pair_no, item_no, item_id, 'role', old_role, new_role
    FROM disagreeing
    WHERE old_role <> new_role
    UNION ALL
    SELECT pair_no, item_no, item_id, 'text', old_text, new_text
    FROM disagreeing
    WHERE old_sha256 <> new_sha256
    UNION ALL
    SELECT pair_no, item_no, item_id, 'acl', CAST(old_acl AS VARCHAR), CAST(new_acl AS VARCHAR)
    FROM disagreeing
    WHERE old_acl <> new_acl
    UNION ALL
    SELECT pair_no, item_no, item_id, 'source_revision', old_revision, new_revision
    FROM disagreeing
    WHERE old_revision <> new_revision
    UNION ALL
    SELECT pair_no, item_no, item_id, 'content_sha256', old_sha256, new_sha256
    FROM disagreeing
    WHERE old_sha256 <> new_sha256
)
SELECT
    pairs.old_space_id,
    pairs.new_space_id,
    fields.item_id,
    fields.field,
    fields.old_value,
    fields.new_value
FROM differing_fields AS fields
JOIN comparable_pairs AS pairs USING (pair_no)
ORDER BY fields.pair_no, fields.item_no, fields.field
