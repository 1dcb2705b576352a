-- One row: how much of the exact top k one approximate index returned for one query case, at one
-- cut-off k, over all documents of one space. Exact search in the same space is the ground truth;
-- relevance to judgements is another thing and stands beside it under its own names.
--
-- eligible_count (E): documents that the subject may read. K = min(k, E).
-- ann_recall_at_k         : |approximate top k and exact top K| / K (as in ann-benchmarks:
--                           Aumueller, Bernhardsson, Faithfull, Information Systems 87, 2020)
-- tie_aware_ann_recall_at_k: a returned document whose exact score ties with the K-th exact score, on
--                           the ranking grid, counts as found too; at most 1
-- short_results           : how many fewer than K documents came back; they lower the recall too
-- selectivity             : E / documents of the space; selectivity_band groups it
-- nprobe, path            : lists probed (NULL where there are none), and whether the index was
--                           searched ('index') or all eligible documents ('exact')
-- ndcg_cost               : nDCG@k of exact search - nDCG@k of this index; negative where the
--                           approximation happened to rank better
-- status: 'ok'; 'empty_eligible' where E = 0; 'not_executed' where the index could not be built.
-- Undefined: recall is NULL unless status is 'ok', never 0; ndcg columns as in case_measures.
WITH document_counts AS (
    SELECT held.space_no, count(*) AS document_count
    FROM base.space_items AS held
    JOIN base.spaces AS spaces USING (space_no)
    WHERE held.role = spaces.document_role
    GROUP BY held.space_no
),
ground_truth AS (
    SELECT ranked.space_no, ranked.case_no, ranked.rank, ranked.item_no,
        round_even(ranked.score / searched.grid_step, 0) AS ranking_key
    FROM base.results AS ranked
    JOIN base.searches AS searched USING (space_no, index_name, case_no)
    WHERE ranked.scope = 0 AND ranked.index_name = 'exact'
),
asked AS (
    SELECT searched.*, cutoffs.k, least(cutoffs.k, searched.eligible_count) AS depth
    FROM base.searches AS searched
    CROSS JOIN base.evaluated_k AS cutoffs
    WHERE searched.index_name <> 'exact'
),
kth AS (
    SELECT asked.space_no, asked.index_name, asked.case_no, asked.k, ground_truth.ranking_key
    FROM asked
    JOIN ground_truth
        ON ground_truth.space_no = asked.space_no
        AND ground_truth.case_no = asked.case_no
        AND ground_truth.rank = asked.depth
),
returned AS (
    SELECT
        asked.space_no,
        asked.index_name,
        asked.case_no,
        asked.k,
        count(*) AS returned_count,
        count(ground_truth.item_no) AS found_count,
        count(*) FILTER (
            WHERE round_even(ranked.exact_score / asked.grid_step, 0) >= kth.ranking_key
        ) AS found_with_ties
    FROM asked
    JOIN kth USING (space_no, index_name, case_no, k)
    JOIN base.results AS ranked
        ON ranked.scope = 0
        AND ranked.space_no = asked.space_no
        AND ranked.index_name = asked.index_name
        AND ranked.case_no = asked.case_no
        AND ranked.rank <= asked.k
    LEFT JOIN ground_truth
        ON ground_truth.space_no = asked.space_no
        AND ground_truth.case_no = asked.case_no
        AND ground_truth.item_no = ranked.item_no
        AND ground_truth.rank <= asked.depth
    GROUP BY asked.space_no, asked.index_name, asked.case_no, asked.k
),
recalled AS (
    SELECT
        asked.space_no,
        asked.index_name,
        asked.case_no,
        asked.k,
        asked.eligible_count,
        asked.nprobe,
        asked.path,
        CASE WHEN asked.depth > 0
            THEN coalesce(returned.found_count, 0) / asked.depth END AS ann_recall_at_k,
        CASE WHEN asked.depth > 0
            THEN least(coalesce(returned.found_with_ties, 0), asked.depth) / asked.depth END
            AS tie_aware_ann_recall_at_k,
        greatest(asked.depth - coalesce(returned.returned_count, 0), 0) AS short_results,
        CASE WHEN asked.depth > 0 THEN 'ok' ELSE 'empty_eligible' END AS status
    FROM asked
    LEFT JOIN returned USING (space_no, index_name, case_no, k)
    UNION ALL
    SELECT space_no, index_name, cases.case_no, cutoffs.k, NULL, NULL, NULL, NULL, NULL, NULL,
        'not_executed'
    FROM base.index_builds
    CROSS JOIN base.cases AS cases
    CROSS JOIN base.evaluated_k AS cutoffs
    WHERE status = 'not_executed'
)
SELECT
    spaces.space_id,
    recalled.index_name,
    cases.case_id,
    recalled.k,
    recalled.eligible_count,
    recalled.eligible_count / document_counts.document_count AS selectivity,
    CASE
        WHEN recalled.eligible_count IS NULL THEN NULL
        WHEN recalled.eligible_count = 0 THEN '0 none'
        WHEN recalled.eligible_count <= 0.005 * document_counts.document_count THEN '1 up to 0.5%'
        WHEN recalled.eligible_count <= 0.05 * document_counts.document_count THEN '2 up to 5%'
        WHEN recalled.eligible_count <= 0.5 * document_counts.document_count THEN '3 up to 50%'
        WHEN recalled.eligible_count < document_counts.document_count THEN '4 over 50%'
        ELSE '5 all'
    END AS selectivity_band,
    recalled.nprobe,
    recalled.path,
    recalled.ann_recall_at_k,
    recalled.tie_aware_ann_recall_at_k,
    recalled.short_results,
    recalled.status,
    measured.ndcg_at_k,
    exact.ndcg_at_k AS exact_ndcg_at_k,
    exact.ndcg_at_k - measured.ndcg_at_k AS ndcg_cost
FROM recalled
JOIN base.spaces AS spaces USING (space_no)
JOIN base.cases AS cases USING (case_no)
LEFT JOIN document_counts USING (space_no)
LEFT JOIN case_measures AS measured
    ON measured.scope = 0
    AND measured.space_no = recalled.space_no
    AND measured.index_name = recalled.index_name
    AND measured.case_no = recalled.case_no
    AND measured.k = recalled.k
LEFT JOIN case_measures AS exact
    ON exact.scope = 0
    AND exact.space_no = recalled.space_no
    AND exact.index_name = 'exact'
    AND exact.case_no = recalled.case_no
    AND exact.k = recalled.k
ORDER BY recalled.space_no, recalled.index_name, recalled.k, recalled.case_no
