-- One row: one validation that ran before this release was built.
-- details is JSON: the expectations with what was expected, observed and failing.
-- evaluated_at is UTC.
SELECT
    check_name,
    asset,
    passed,
    severity,
    evaluated_at,
    CAST(details AS JSON) AS details
FROM base.checks
ORDER BY asset, check_name, evaluated_at
