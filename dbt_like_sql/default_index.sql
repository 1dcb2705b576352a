-- One row: the index that serves one space. It is 'exact' until a person decides otherwise; who, when,
-- why and on what evidence (a digest) come from the suite's default_index.json, and are NULL where
-- nobody ever decided.
SELECT
    spaces.space_id,
    chosen.index_name,
    chosen.decided_by,
    chosen.decided_at,
    chosen.why,
    chosen.evidence
FROM base.default_indexes AS chosen
JOIN base.spaces AS spaces USING (space_no)
ORDER BY chosen.space_no
