-- One row: one signed decision of the suite's decisions.yaml, in the order of the file.
-- item: 'quality OLD:NEW' (a person decides on an audited migration), 'shadow_and_rollback',
-- 'approvals', or 'accept ITEM' for a checklist item that was not executed. decision is 'approve' or
-- 'refuse'; of several valid decisions about one item the last counts.
-- status is 'valid' while the data and the contract signatures that the decision names are those of
-- this release, else 'expired', and reason says what changed. evaluation_id is the evaluation that was
-- decided on; decided_at is UTC.
SELECT
    item,
    decision,
    decided_by,
    decided_at,
    evaluation_id,
    why,
    status,
    reason
FROM base.decisions
ORDER BY decision_no
