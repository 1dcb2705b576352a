-- One row: one measure of one comparison (a migration, an index against exact search, or today
-- against the pinned baseline) over all queries, or over a subgroup: is the change more than chance?
-- mean_difference: new - old over the defined_count queries that are defined in both.
-- interval_low, interval_high: 95% interval of the mean difference, paired bootstrap over queries.
-- p_value: paired randomization (sign flip) test, two-sided; p_method says 'exact' or 'monte_carlo'.
-- p_adjusted: p_value after Holm's correction over the family_size questions of the comparison.
-- smallest_detectable: the difference that this query set would find with 80% power at 5%.
-- verdict: 'better', 'worse', 'inconclusive', 'unchanged', or 'too_few' below 20 queries, where nothing
-- can be concluded; sentence says it in words. subgroup is NULL for all queries.
-- Undefined: numbers after the counts are NULL where the verdict is 'too_few'. Formulas and sources:
-- rag_assets/statistics.
SELECT
    comparison_id,
    subgroup,
    measure,
    k,
    query_count,
    defined_count,
    changed_count,
    better_count,
    worse_count,
    old_mean,
    new_mean,
    mean_difference,
    interval_low,
    interval_high,
    p_value,
    p_method,
    family_size,
    p_adjusted,
    smallest_detectable,
    verdict,
    sentence,
    seed
FROM base.comparisons
ORDER BY comparison_id, subgroup NULLS FIRST, measure, k
