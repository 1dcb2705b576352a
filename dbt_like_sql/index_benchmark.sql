-- One row: one index over one space: what it costs to build, keep and ask, and at one cut-off k what
-- part of the exact results it returns. All indexes of a space, exact search among them, are timed
-- in one run, so that the ratios are fair; times of different spaces or releases are not.
--
-- params, seed       : what the index was built with (params as JSON; NULL for exact search)
-- build_ms           : wall time of training and filling; NULL for exact search
-- index_bytes        : bytes of the stored index; for exact search those of the raw vectors
-- bytes_per_vector   : index_bytes / documents
-- memory_bytes       : index_bytes and what searching needs beside it: the raw vectors too, where
--                      they are re-ranked with or searched exactly under narrow filters
-- p50_ms .. p99_ms   : single queries on one thread, pooled over all measured calls
-- best_p50_ms        : median over queries of each one's fastest call; the ratios are made of it
-- speedup            : best_p50_ms of exact search / best_p50_ms of this index
-- compression        : raw vector bytes / index_bytes
-- queries_per_second : batches on one thread; _parallel on `threads` threads
-- filter_ms .. other_ms: mean time per query by stage, where the index can tell its stages apart
-- status: 'ok'; 'not_executed' with a reason where the engine was missing; 'not_measured' where no
-- query could see any document.
-- Undefined: what was not measured is NULL; note says what a time budget cut short.
WITH documents AS (
    SELECT
        held.space_no,
        count(*) AS document_count,
        count(*) * any_value(spaces.dimension)
            * CASE any_value(spaces.dtype) WHEN 'float64' THEN 8 ELSE 4 END AS raw_bytes
    FROM base.space_items AS held
    JOIN base.spaces AS spaces USING (space_no)
    WHERE held.role = spaces.document_role
    GROUP BY held.space_no
),
declared AS (
    SELECT documents.space_no, 'exact' AS index_name, 'exact' AS kind, NULL AS params, NULL AS seed,
        'built' AS status, NULL AS status_reason, NULL AS build_ms,
        documents.raw_bytes AS index_bytes, documents.raw_bytes AS memory_bytes
    FROM documents
    UNION ALL
    SELECT space_no, index_name, kind, params, seed, status, status_reason, build_ms,
        index_bytes, memory_bytes
    FROM base.index_builds
),
exact_times AS (
    SELECT space_no, best_p50_ms FROM base.benchmarks WHERE index_name = 'exact'
)
SELECT
    spaces.space_id,
    declared.index_name,
    declared.kind,
    declared.params,
    declared.seed,
    times.k,
    times.query_count,
    declared.build_ms,
    declared.index_bytes,
    declared.index_bytes / documents.document_count AS bytes_per_vector,
    declared.memory_bytes,
    documents.raw_bytes / declared.index_bytes AS compression,
    times.p50_ms,
    times.p95_ms,
    times.p99_ms,
    times.best_p50_ms,
    times.best_p95_ms,
    exact_times.best_p50_ms / times.best_p50_ms AS speedup,
    times.queries_per_second,
    times.queries_per_second_parallel,
    times.threads,
    times.filter_ms,
    times.search_ms,
    times.rerank_ms,
    times.other_ms,
    CASE WHEN declared.index_name = 'exact' THEN 1.0 ELSE recall.mean_ann_recall_at_k END
        AS mean_ann_recall_at_k,
    CASE
        WHEN declared.status <> 'built' THEN 'not_executed'
        WHEN times.space_no IS NULL THEN 'not_measured'
        ELSE 'ok'
    END AS status,
    declared.status_reason,
    times.rounds,
    times.note
FROM declared
JOIN documents USING (space_no)
JOIN base.spaces AS spaces USING (space_no)
LEFT JOIN base.benchmarks AS times
    ON times.space_no = declared.space_no AND times.index_name = declared.index_name
LEFT JOIN exact_times ON exact_times.space_no = declared.space_no
LEFT JOIN ann_recall_by_space AS recall
    ON recall.space_id = spaces.space_id
    AND recall.index_name = declared.index_name
    AND recall.k = times.k
ORDER BY declared.space_no, declared.index_name <> 'exact', declared.index_name
