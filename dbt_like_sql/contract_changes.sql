-- One row: one space whose contract differs between this evaluation and the one before: 'added',
-- 'removed', or 'changed'. Vectors under two signatures are never compared, a no-answer threshold
-- calibrated under the old one is refused, and decisions made under it have expired.
-- Empty in the first evaluation, and where the snapshot of the one before is no longer kept.
SELECT
    coalesce(now.space_id, before.space_id) AS space_id,
    CASE
        WHEN before.space_id IS NULL THEN 'added'
        WHEN now.space_id IS NULL THEN 'removed'
        ELSE 'changed'
    END AS change,
    before.model AS old_model,
    now.model AS new_model,
    before.revision AS old_revision,
    now.revision AS new_revision,
    before.contract_signature AS old_signature,
    now.contract_signature AS new_signature
FROM base.previous_spaces AS before
FULL OUTER JOIN base.spaces AS now ON now.space_id = before.space_id
WHERE
    EXISTS (SELECT 1 FROM base.previous_spaces)
    AND before.contract_signature IS DISTINCT FROM now.contract_signature
ORDER BY ALL
