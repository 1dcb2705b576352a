-- One row: the space that serves this suite's users, as it was when this release was built; there is
-- exactly one row. Every column is NULL where no space was ever activated. since is UTC.
SELECT
    latest.space_id,
    latest.switched_at AS since,
    latest.switched_by,
    latest.why,
    latest.evaluation_id,
    latest.contract_signature
FROM (SELECT 1 AS suite) AS this
LEFT JOIN (
    SELECT * FROM base.space_switches ORDER BY switch_no DESC LIMIT 1
) AS latest ON TRUE
