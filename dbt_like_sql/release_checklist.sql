-- One row: one item of the release checklist, with what was found and how to get it.
-- status: 'pass'; 'fail'; 'not_executed' where the tables cannot show it (evidence says what is
-- missing); 'needs_decision' where a person has to sign and nobody did, or the signature expired.
-- decided_by and decided_at (UTC): who signed the item, or who accepted that it was not executed, which
-- lets a space be activated and leaves the status as it is; NULL where nobody did.
-- Items 1 to 8 and 11 are counted anew from the tables of this release; 9 and 10 are signed.
SELECT
    item_no,
    item,
    status,
    evidence,
    how_to_get_it,
    decided_by,
    decided_at
FROM base.checklist
ORDER BY item_no
