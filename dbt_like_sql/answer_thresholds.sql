-- One row: the no-answer threshold of one space: a query is answered where its best score reaches it.
-- It was chosen on the dev split by the stated costs of false answers and false refusals, and evaluated
-- once on the test split. It belongs to one contract_signature: refusal says why it must not be used
-- (the space has another signature by now, or too few queries to calibrate), NULL where it may.
-- status is 'calibrated' or 'not_calibrated'; sentence says in words what it does.
-- Undefined: precision is NULL where no query is answered, numbers of a split that was not looked at.
SELECT *
FROM base.thresholds
ORDER BY space_id
