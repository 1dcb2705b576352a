-- One row: one run that found content, code and settings as the evaluation named here left them, and
-- so added nothing else to the history. seen_at is UTC; the last 1,000 are kept.
SELECT evaluation_id, seen_at, dagster_run_id
FROM base.heartbeats
ORDER BY seen_at DESC
