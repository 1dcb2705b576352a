-- One row: one switch of the space that serves, the oldest first, from the suite's active_space.json.
-- kind is 'activate' or 'roll_back'; contract_signature is that of the space when it was activated;
-- evaluation_id the evaluation that the switch was decided on, NULL where a roll-back had no release.
-- forced: what a forced roll-back passed over, NULL for any other switch. switched_at is UTC.
SELECT
    switch_no,
    space_id,
    contract_signature,
    kind,
    switched_by,
    switched_at,
    why,
    evaluation_id,
    forced
FROM base.space_switches
ORDER BY switch_no
