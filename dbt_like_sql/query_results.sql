-- One row: one document returned for one query case by one index over all documents of one space.
-- rank counts from 1 (score descending, then item_id ascending); higher scores are better in every
-- metric (euclidean is the negative distance). A case without rows had no result.
SELECT
    spaces.space_id,
    results.index_name,
    cases.case_id,
    results.rank,
    items.item_id,
    results.score
FROM base.results AS results
JOIN base.spaces AS spaces USING (space_no)
JOIN base.cases AS cases USING (case_no)
JOIN base.items AS items USING (item_no)
WHERE results.scope = 0
