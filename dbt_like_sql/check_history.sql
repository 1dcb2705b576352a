-- One row: the outcome of one check in one evaluation, this one included, or a check that stopped a
-- run before it came to an evaluation (evaluation_id is NULL; the last 1,000 of these are kept).
-- source_reading is the strict reading of the source itself. severity: 'error' or 'warn'; details is
-- the whole report as JSON. evaluated_at is UTC.
SELECT
    evaluation_id,
    dagster_run_id,
    asset,
    check_name,
    passed,
    severity,
    evaluated_at,
    details
FROM base.history_checks
UNION ALL BY NAME
SELECT latest.evaluation_id, latest.dagster_run_id, checks.*
FROM base.checks AS checks
CROSS JOIN (
    SELECT evaluation_id, dagster_run_id FROM base.evaluations WHERE is_latest
) AS latest
ORDER BY evaluated_at, asset, check_name
