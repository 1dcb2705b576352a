-- One row: one query case, and a digest of everything that it says: its query item, subject groups,
-- subgroups, split and judgements. Equal digests mean an unchanged case.
WITH judged AS (
    SELECT
        qrels.case_no,
        string_agg(items.item_id || '=' || qrels.grade, chr(10) ORDER BY items.item_id) AS judgements
    FROM base.qrels AS qrels
    JOIN base.items AS items USING (item_no)
    GROUP BY qrels.case_no
)
SELECT
    cases.case_id,
    sha256(
        CAST(
            {
                'query_item_id': cases.query_item_id,
                'subject_groups': cases.subject_groups,
                'subgroups': cases.subgroups,
                'split': cases.split,
                'judgements': judged.judgements
            } AS VARCHAR
        )
    ) AS case_digest
FROM base.cases AS cases
LEFT JOIN judged USING (case_no)
ORDER BY cases.case_id
