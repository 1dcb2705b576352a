-- One row: what a sweep showed, by the rule that was registered before its first run (plan, as JSON,
-- at registered_at). verdict is 'supported', 'not_supported' or 'inconclusive' about the claim that
-- a mean ANN recall is reached before the stop; reason says it in a sentence; stopped_at is the first
-- value that no longer counts, NULL where every value was walked.
SELECT
    verdicts.sweep,
    spaces.space_id,
    verdicts.index_name,
    verdicts.parameter,
    verdicts.k,
    verdicts.seeds,
    verdicts.verdict,
    verdicts.reason,
    verdicts.stopped_at,
    verdicts.claim,
    verdicts.stop_rule,
    verdicts.plan,
    verdicts.plan_digest,
    verdicts.registered_at
FROM base.sweep_verdicts AS verdicts
JOIN base.spaces AS spaces USING (space_no)
ORDER BY verdicts.sweep
