-- One row: one declared budget beside what was measured, for the default index of one evaluated space
-- (cost_per_month: for the suite, with space_id and index_name NULL).
-- measure: p95_ms, index_bytes and build_ms as in index_benchmark, at most budget_limit;
-- queries_per_second, at least budget_limit; cost_per_month, an estimate whose source is stated.
-- status: 'within'; 'over' where the budget is broken; 'not_measured'. Exact search has no index that
-- would be trained: its build_ms is NULL and within any budget.
-- Undefined: measured is NULL where nothing was measured, and never counts as 0.
WITH serving AS (
    SELECT
        chosen.space_id,
        chosen.index_name,
        timed.p95_ms,
        timed.queries_per_second,
        timed.index_bytes,
        timed.build_ms
    FROM default_index AS chosen
    JOIN base.spaces AS spaces ON spaces.space_id = chosen.space_id
    LEFT JOIN index_benchmark AS timed
        ON timed.space_id = chosen.space_id AND timed.index_name = chosen.index_name
    WHERE spaces.status = 'evaluated'
),
measured AS (
    SELECT
        serving.space_id,
        serving.index_name,
        budgets.*,
        CASE budgets.measure
            WHEN 'p95_ms' THEN serving.p95_ms
            WHEN 'queries_per_second' THEN serving.queries_per_second
            WHEN 'index_bytes' THEN CAST(serving.index_bytes AS DOUBLE)
            WHEN 'build_ms' THEN serving.build_ms
        END AS measured
    FROM serving
    CROSS JOIN base.budgets AS budgets
    WHERE budgets.measure <> 'cost_per_month'
    UNION ALL
    SELECT NULL, NULL, budgets.*, budgets.estimate
    FROM base.budgets AS budgets
    WHERE budgets.measure = 'cost_per_month'
)
SELECT
    space_id,
    index_name,
    measure,
    budget_limit,
    measured,
    CASE
        WHEN measure = 'build_ms' AND index_name = 'exact' THEN 'within'
        WHEN measured IS NULL THEN 'not_measured'
        WHEN measure = 'queries_per_second' AND measured < budget_limit THEN 'over'
        WHEN measure <> 'queries_per_second' AND measured > budget_limit THEN 'over'
        ELSE 'within'
    END AS status,
    source
FROM measured
ORDER BY space_id NULLS LAST, measure
