-- One row: the measures of one query case, at one cut-off k, for one index over one space.
-- This is the only definition of the measures; every other table takes them from here.
--
-- scope 0 is a search over all documents of the space. scope = pair_no is a search over the documents
-- that both spaces of an audited pair hold; judgements of other documents are left out there.
--
-- relevant       : a judged document with grade > 0 that the subject may read (canonical ACL)
-- recall_at_k    : |top k and relevant| / |relevant|
-- precision_at_k : |top k and relevant| / k, also when fewer than k came back
-- reciprocal_rank: 1 / rank of the first relevant document in the top k, else 0
-- ndcg_at_k      : DCG / ideal DCG; gain 2^grade - 1, discount log2(rank + 1); the ideal ranks all
--                  relevant documents by grade and is cut at k
-- Sources: Manning, Raghavan, Schuetze, Introduction to Information Retrieval (2008), chapter 8;
-- nDCG with exponential gain: Burges et al., Learning to Rank using Gradient Descent, ICML 2005.
--
-- Undefined: a case without a relevant document has NULL in all four. A case with relevant documents
-- and no result has 0. Sums run in order of rank, so that they are equal to the last bit in any run.
WITH restricted_pairs AS (
    SELECT pair_no, old_space_no, new_space_no
    FROM base.audited_pairs
    WHERE pair_no IN (SELECT scope FROM base.results WHERE scope > 0)
),
shared_documents AS (
    SELECT pairs.pair_no, old_items.item_no
    FROM restricted_pairs AS pairs
    JOIN base.spaces AS old_spaces ON old_spaces.space_no = pairs.old_space_no
    JOIN base.spaces AS new_spaces ON new_spaces.space_no = pairs.new_space_no
    JOIN base.space_items AS old_items
        ON old_items.space_no = pairs.old_space_no AND old_items.role = old_spaces.document_role
    JOIN base.space_items AS new_items
        ON new_items.space_no = pairs.new_space_no AND new_items.role = new_spaces.document_role
        AND new_items.item_no = old_items.item_no
),
executed AS (
    SELECT CAST(0 AS SMALLINT) AS scope, space_no, index_name
    FROM base.indexes
    UNION ALL
    SELECT pairs.pair_no, indexes.space_no, indexes.index_name
    FROM restricted_pairs AS pairs
    JOIN base.indexes AS indexes
        ON indexes.space_no = pairs.old_space_no OR indexes.space_no = pairs.new_space_no
),
judged AS (
    SELECT judgements.case_no, judgements.item_no, judgements.grade
    FROM base.qrels AS judgements
    JOIN base.cases AS cases USING (case_no)
    JOIN base.items AS items USING (item_no)
    WHERE judgements.grade > 0 AND list_has_any(items.acl, cases.subject_groups)
),
relevant AS (
    SELECT CAST(0 AS SMALLINT) AS scope, case_no, item_no, power(2, grade) - 1 AS gain
    FROM judged
    UNION ALL
    SELECT shared_documents.pair_no, judged.case_no, judged.item_no, power(2, judged.grade) - 1
    FROM judged
    JOIN shared_documents USING (item_no)
),
ideal AS (
    SELECT
        scope,
        case_no,
        gain,
        row_number() OVER (PARTITION BY scope, case_no ORDER BY gain DESC, item_no) AS ideal_rank
    FROM relevant
),
attainable AS (
    SELECT
        ideal.scope,
        ideal.case_no,
        cutoffs.k,
        count(*) AS relevant_count,
        sum(ideal.gain / log2(ideal.ideal_rank + 1) ORDER BY ideal.ideal_rank)
            FILTER (WHERE ideal.ideal_rank <= cutoffs.k) AS ideal_dcg
    FROM ideal
    CROSS JOIN base.evaluated_k AS cutoffs
    GROUP BY ideal.scope, ideal.case_no, cutoffs.k
),
found AS (
    SELECT
        ranked.scope,
        ranked.space_no,
        ranked.index_name,
        ranked.case_no,
        cutoffs.k,
        count(*) AS found_count,
        min(ranked.rank) AS first_rank,
        sum(relevant.gain / log2(ranked.rank + 1) ORDER BY ranked.rank) AS dcg
    FROM base.results AS ranked
    JOIN relevant USING (scope, case_no, item_no)
    JOIN base.evaluated_k AS cutoffs ON ranked.rank <= cutoffs.k
    GROUP BY ranked.scope, ranked.space_no, ranked.index_name, ranked.case_no, cutoffs.k
)
SELECT
    executed.scope,
    executed.space_no,
    executed.index_name,
    cases.case_no,
    cutoffs.k,
    coalesce(attainable.relevant_count, 0) AS relevant_count,
    CASE WHEN attainable.relevant_count > 0
        THEN coalesce(found.found_count, 0) / attainable.relevant_count END AS recall_at_k,
    CASE WHEN attainable.relevant_count > 0
        THEN coalesce(found.found_count, 0) / cutoffs.k END AS precision_at_k,
    CASE WHEN attainable.relevant_count > 0
        THEN coalesce(1 / found.first_rank, 0) END AS reciprocal_rank,
    CASE WHEN attainable.relevant_count > 0
        THEN coalesce(found.dcg, 0) / attainable.ideal_dcg END AS ndcg_at_k
FROM executed
CROSS JOIN base.cases AS cases
CROSS JOIN base.evaluated_k AS cutoffs
LEFT JOIN attainable
    ON attainable.scope = executed.scope
    AND attainable.case_no = cases.case_no
    AND attainable.k = cutoffs.k
LEFT JOIN found
    ON found.scope = executed.scope
    AND found.space_no = executed.space_no
    AND found.index_name = executed.index_name
    AND found.case_no = cases.case_no
    AND found.k = cutoffs.k
