-- One row: one query case, that is a query item asked by a subject who belongs to subject_groups.
-- subgroups are the slices it is reported in; split is NULL where the source has no splits.
SELECT
    case_id,
    query_item_id,
    subject_groups,
    subgroups,
    split
FROM base.cases
ORDER BY case_no
