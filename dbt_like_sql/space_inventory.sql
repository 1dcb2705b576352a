-- One row: what one space holds.
-- estimated_raw_vector_bytes = item_count x dimension x bytes of dtype (float32: 4, float64: 8):
-- the components alone, without ids or index structures.
-- norm_min, norm_median, norm_max are over the L2 norms of all its vectors; NULL where it has none.
WITH held AS (
    SELECT
        space_no,
        count(*) AS item_count,
        count(*) FILTER (WHERE items.role = spaces.document_role) AS document_count,
        count(*) FILTER (WHERE items.role = spaces.query_role) AS query_item_count,
        min(items.l2_norm) AS norm_min,
        median(items.l2_norm) AS norm_median,
        max(items.l2_norm) AS norm_max
    FROM base.space_items AS items
    JOIN base.spaces AS spaces USING (space_no)
    GROUP BY space_no
)
SELECT
    spaces.space_id,
    spaces.contract_signature,
    spaces.status,
    spaces.status_reason,
    coalesce(held.item_count, 0) AS item_count,
    coalesce(held.document_count, 0) AS document_count,
    coalesce(held.query_item_count, 0) AS query_item_count,
    spaces.dimension,
    coalesce(held.item_count, 0) * spaces.dimension
        * CASE spaces.dtype WHEN 'float32' THEN 4 ELSE 8 END AS estimated_raw_vector_bytes,
    held.norm_min,
    held.norm_median,
    held.norm_max
FROM base.spaces AS spaces
LEFT JOIN held USING (space_no)
ORDER BY spaces.space_no
