-- One row: one item as one space holds it. Compare with canonical_items to see disagreement.
-- l2_norm is the Euclidean norm of the stored vector in float64; NULL where no vector was computed.
SELECT
    spaces.space_id,
    items.item_id,
    held.role,
    held.acl,
    held.source_revision,
    held.content_sha256,
    held.l2_norm
FROM base.space_items AS held
JOIN base.spaces AS spaces USING (space_no)
JOIN base.items AS items USING (item_no)
ORDER BY held.space_no, held.item_no
