-- One row: one regression gate of the suite: one rule with its bound, for one measure of one index in
-- one space, over all queries (subgroup NULL) or over a subgroup.
-- rule 'floor': value, the mean over the defined_count queries of today, must be at least bound; hard.
-- rule 'max_drop': over the defined_count queries that are defined both today and in the pinned
-- baseline, value and baseline_value are the means and difference = value - baseline_value. It fails
-- where the mean fell by more than bound and p_adjusted is at most the suite's level: p_value of the
-- paired randomization test (two-sided), after Holm's correction over every max_drop of the suite in
-- which at least 6 of at least 20 queries changed (p_adjusted is 1 for others with 20 queries).
-- status: 'pass', 'fail', 'inconclusive' (fell by more than bound, which may be chance), or
-- 'not_executed' with the reason in sentence, which is neither passed nor failed.
-- worse_queries: queries whose measure is lower than in the baseline, by loss, at most 1000.
-- Undefined: numbers of a gate that was not executed; baseline_value, difference, changed_count and
-- the p-values of a floor; the p-values below 20 queries; worse_queries and baseline_evaluation where
-- there is no baseline to compare with. The baseline is base.baseline_by_query and base.baseline.
SELECT
    gates.space_id,
    gates.index_name,
    gates.subgroup,
    gates.measure,
    gates.k,
    gates.rule,
    gates.bound,
    gates.value,
    gates.baseline_value,
    gates.difference,
    gates.defined_count,
    gates.changed_count,
    gates.p_value,
    gates.p_adjusted,
    gates.status,
    gates.sentence,
    gates.worse_queries,
    pinned.evaluation_id AS baseline_evaluation
FROM base.regression_gates AS gates
LEFT JOIN base.baseline AS pinned ON TRUE
ORDER BY gates.gate_no
