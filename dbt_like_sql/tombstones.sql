-- One row: one item that the source states as deleted: it must be in no space and no result. Items
-- that merely disappeared from the source are not here.
SELECT item_id
FROM base.tombstones
ORDER BY item_id
