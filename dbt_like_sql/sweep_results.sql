-- One row: one value and seed of a sweep over one parameter of an index; failed seeds stay, with the
-- reason. mean_ann_recall is over defined_count queries; recall_low and recall_high bound the mean
-- over all queries (95%, percentile bootstrap) where only a sample was searched. p50_ms, p95_ms are
-- single queries on one thread; best_* each query at its fastest; exact_best_p95_ms is exact search
-- in the same run. Undefined: every number of a failed seed is NULL.
SELECT
    runs.sweep,
    spaces.space_id,
    runs.index_name,
    runs.parameter,
    runs.value,
    runs.seed,
    runs.status,
    runs.reason,
    runs.query_count,
    runs.defined_count,
    runs.mean_recall AS mean_ann_recall,
    runs.mean_tie_aware_recall AS mean_tie_aware_ann_recall,
    runs.recall_low,
    runs.recall_high,
    runs.short_results,
    runs.p50_ms,
    runs.p95_ms,
    runs.best_p50_ms,
    runs.best_p95_ms,
    runs.exact_best_p95_ms,
    runs.build_ms,
    runs.index_bytes
FROM base.sweep_runs AS runs
JOIN base.spaces AS spaces USING (space_no)
ORDER BY runs.sweep, runs.value_no, runs.seed
