-- One row: one mean measure at one cut-off k, for one index over all documents of one space, over all
-- queries or over a subgroup, with the interval that tells how well the queries determine it.
-- measure: 'ndcg_at_k', 'reciprocal_rank', 'recall_at_k' and 'precision_at_k' against judgements, whose
-- means are those of metric_by_space and metric_by_subgroup; 'ann_recall_at_k' against exact search.
-- subgroup is NULL for all queries; with more than 5000 queries there are no other rows.
-- mean = sum over the defined_count queries where the measure is defined / defined_count.
-- interval_low, interval_high: 95% interval of the mean, percentile bootstrap over queries with 10,000
-- resamples from `seed`. It is about other queries of the same kind: two spaces are asked the same
-- queries, so compare them by comparison_statistics and not by whether two intervals overlap.
-- Undefined: the mean is NULL without a defined query, the interval below 20, where nothing can be
-- concluded. Formulas and sources: rag_assets/statistics/means.py.
SELECT
    spaces.space_id,
    intervals.index_name,
    intervals.subgroup,
    intervals.measure,
    intervals.k,
    intervals.query_count,
    intervals.defined_count,
    intervals.mean,
    intervals.interval_low,
    intervals.interval_high,
    intervals.seed
FROM base.metric_intervals AS intervals
JOIN base.spaces AS spaces USING (space_no)
ORDER BY
    intervals.space_no, intervals.index_name, intervals.subgroup NULLS FIRST, intervals.measure,
    intervals.k
