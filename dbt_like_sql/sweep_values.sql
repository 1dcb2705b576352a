-- One row: one value of a sweep, its seeds summed up: how many succeeded and failed, mean, spread and
-- sample standard deviation of their mean ANN recall, mean p95 (pooled, and with each query at its
-- fastest). on_pareto_front: no other value has at least its recall in at most its time.
-- Undefined: numbers are NULL where no seed succeeded; std_ann_recall where fewer than two did.
SELECT
    summed.sweep,
    spaces.space_id,
    summed.index_name,
    summed.parameter,
    summed.value,
    summed.seeds,
    summed.failed,
    summed.mean_recall AS mean_ann_recall,
    summed.min_recall AS min_ann_recall,
    summed.max_recall AS max_ann_recall,
    summed.std_recall AS std_ann_recall,
    summed.mean_p95_ms,
    summed.mean_best_p95_ms,
    summed.on_pareto_front
FROM base.sweep_values AS summed
JOIN base.spaces AS spaces USING (space_no)
ORDER BY summed.sweep, summed.value_no
