-- One row: what one candidate threshold does on the dev split of one space, ascending; the first
-- answers every query that found a document, the last none. chosen marks the one taken: the least
-- expected_cost per query, of equal ones the highest threshold.
-- precision = true answers / answers, NULL where none is given; recall = true answers / answerable.
SELECT *
FROM base.threshold_curve
ORDER BY space_id, threshold
