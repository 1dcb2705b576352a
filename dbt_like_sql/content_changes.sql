-- One row: one thing that differs between this evaluation's source and that of the evaluation before.
-- kind 'item': 'added', 'deleted', 'edited' (role or text), 'access' (its ACL, all else as it was or
-- not), 'revision' (only its source revision).
-- kind 'case': 'added', 'deleted', 'edited' (its query item, groups, subgroups, split or judgements).
-- old_value, new_value: content hashes, ACLs, revisions or digests; NULL where there is none.
-- Empty in the first evaluation, and where the snapshot of the one before is no longer kept.
WITH pairs AS (
    SELECT
        coalesce(now.item_id, before.item_id) AS id,
        before.item_id IS NOT NULL AS was_there,
        now.item_id IS NOT NULL AS is_there,
        before.role || ' ' || before.content_sha256 AS old_content,
        now.role || ' ' || now.content_sha256 AS new_content,
        CAST(before.acl AS VARCHAR) AS old_acl,
        CAST(now.acl AS VARCHAR) AS new_acl,
        before.source_revision AS old_revision,
        now.source_revision AS new_revision
    FROM base.previous_items AS before
    FULL OUTER JOIN base.items AS now ON now.item_id = before.item_id
    WHERE EXISTS (SELECT 1 FROM base.previous_items)
),
cases AS (
    SELECT
        coalesce(now.case_id, before.case_id) AS id,
        before.case_digest AS old_digest,
        now.case_digest AS new_digest
    FROM base.previous_cases AS before
    FULL OUTER JOIN case_digests AS now ON now.case_id = before.case_id
    WHERE EXISTS (SELECT 1 FROM base.previous_items)
)
SELECT 'item' AS kind, id, 'added' AS change, NULL AS old_value, new_content AS new_value
FROM pairs
WHERE NOT was_there
UNION ALL
SELECT 'item', id, 'deleted', old_content, NULL
FROM pairs
WHERE NOT is_there
UNION ALL
SELECT 'item', id, 'edited', old_content, new_content
FROM pairs
WHERE was_there AND is_there AND old_content <> new_content
UNION ALL
SELECT 'item', id, 'access', old_acl, new_acl
FROM pairs
WHERE was_there AND is_there AND old_acl <> new_acl
UNION ALL
SELECT 'item', id, 'revision', old_revision, new_revision
FROM pairs
WHERE
    was_there AND is_there AND old_content = new_content AND old_acl = new_acl
    AND old_revision <> new_revision
UNION ALL
SELECT
    'case',
    id,
    CASE WHEN old_digest IS NULL THEN 'added' WHEN new_digest IS NULL THEN 'deleted' ELSE 'edited' END,
    old_digest,
    new_digest
FROM cases
WHERE old_digest IS DISTINCT FROM new_digest
ORDER BY kind, change, id
