-- One row: one judgement, the grade of one document for one query case. Relevant means grade > 0.
-- A document without a row is unjudged, and counts as not relevant.
SELECT
    cases.case_id,
    items.item_id,
    judgements.grade
FROM base.qrels AS judgements
JOIN base.cases AS cases USING (case_no)
JOIN base.items AS items USING (item_no)
ORDER BY judgements.case_no, judgements.item_no
