-- One row: one stated need (a p95 latency budget and a least recall) and the swept value that serves
-- it: the fastest on the Pareto front within both bounds. Undefined: value is NULL where none does,
-- and reason says why.
SELECT
    points.sweep,
    spaces.space_id,
    points.index_name,
    points.parameter,
    points.need,
    points.need_p95_ms,
    points.need_min_recall,
    points.value,
    points.mean_recall AS mean_ann_recall,
    points.mean_p95_ms,
    points.reason
FROM base.operating_points AS points
JOIN base.spaces AS spaces USING (space_no)
ORDER BY points.sweep, points.need
