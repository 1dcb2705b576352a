-- One row: one condition that an approximate index has to meet before it may become the default of
-- its space, with its evidence and threshold. status is 'pass', 'fail' or 'not_executed'; what could
-- not be examined does not pass. verdict, the same on every row of an index, is
-- 'eligible_for_default' only when all conditions pass. Eligible is not chosen: see default_index.
SELECT
    spaces.space_id,
    gate.index_name,
    gate.condition,
    gate.status,
    gate.evidence,
    gate.threshold,
    gate.verdict
FROM base.promotion AS gate
JOIN base.spaces AS spaces USING (space_no)
ORDER BY gate.space_no, gate.index_name, gate.condition_no
