-- One row: one evaluation of the suite that is kept, this one included; the latest comes first.
-- A run that finds content, code and settings as they were adds no evaluation, only a heartbeat.
-- data_version: SHA-256 over canonical content and vectors; code_version: over code and SQL models.
-- contract_signatures (by space) and manifest are JSON.
-- heartbeat_count: later runs that found everything as it was; last_seen_at: the time of the last run
-- that did, or of the evaluation itself. Times are UTC.
SELECT
    evaluations.evaluation_id,
    evaluations.evaluated_at,
    evaluations.dagster_run_id,
    evaluations.data_version,
    evaluations.code_version,
    evaluations.contract_signatures,
    evaluations.manifest,
    evaluations.is_latest,
    evaluations.is_previous,
    coalesce(beats.heartbeat_count, 0) AS heartbeat_count,
    coalesce(beats.last_seen_at, evaluations.evaluated_at) AS last_seen_at
FROM base.evaluations AS evaluations
LEFT JOIN (
    SELECT evaluation_id, count(*) AS heartbeat_count, max(seen_at) AS last_seen_at
    FROM base.heartbeats
    GROUP BY evaluation_id
) AS beats USING (evaluation_id)
ORDER BY evaluations.evaluated_at DESC
