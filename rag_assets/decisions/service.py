"""Items 5 to 8 and 11: what the tables show of measures, thresholds, budgets and access."""

from __future__ import annotations

import duckdb
import numpy as np

from rag_assets.decisions.content import not_evaluated
from rag_assets.decisions.items import (
    ACCESS,
    BUDGETS,
    NOTICE,
    REPORT,
    THRESHOLDS,
    Finding,
    found,
)
from rag_assets.indexes.acl import DocumentAccess
from rag_assets.warehouse.rows import query_rows

MEASURES = ("recall_at_k", "precision_at_k", "reciprocal_rank", "ndcg_at_k")
# What a release must stay within; the table release_budgets compares.
BUDGETED = ("p95_ms", "queries_per_second", "index_bytes", "build_ms", "cost_per_month")
_LEAKED = """
SELECT returned.space_id, returned.index_name, returned.case_id, returned.item_id
FROM query_results AS returned
JOIN query_cases AS cases USING (case_id)
LEFT JOIN canonical_items AS canonical USING (item_id)
LEFT JOIN space_items AS held USING (space_id, item_id)
WHERE coalesce(list_has_any(canonical.acl, cases.subject_groups), FALSE) IS FALSE
    OR coalesce(list_has_any(held.acl, cases.subject_groups), FALSE) IS FALSE
ORDER BY ALL
"""
_ACCESS_LISTS = """
SELECT DISTINCT canonical.acl AS canonical, held.acl AS held
FROM space_items AS held JOIN canonical_items AS canonical USING (item_id)
ORDER BY ALL
"""


def examine_report(con: duckdb.DuckDBPyConnection) -> Finding:
    """Item 5."""
    faults = [
        f"space {space_id} was evaluated and has no measure of any query"
        for [space_id] in con.sql(
            "SELECT space_id FROM spaces ANTI JOIN metric_by_query USING (space_id) "
            "WHERE status = 'evaluated' ORDER BY space_no"
        ).fetchall()
    ]
    defined = ", ".join(f"count({measure})" for measure in MEASURES)
    [[rows, *counts]] = con.sql(f"SELECT count(*), {defined} FROM metric_by_query").fetchall()
    measures = [name for name, count in zip(MEASURES, counts, strict=True) if count]
    subgroups = [
        name
        for [name] in con.sql(
            "SELECT DISTINCT subgroup FROM metric_by_subgroup ORDER BY subgroup"
        ).fetchall()
    ]
    gaps = not_evaluated(con)
    if len(measures) < 2:
        gaps.append("no query has judgements, so no measure is defined")
    if not subgroups:
        gaps.append("no query names a subgroup")
    seen = f"{rows} rows per query, {len(subgroups)} subgroups, measures {', '.join(measures)}"
    return found(REPORT, faults, gaps, seen if rows else "")


def examine_thresholds(con: duckdb.DuckDBPyConnection) -> Finding:
    """Item 6. Never a failure: a threshold that must not be used is one that is missing."""
    gaps = not_evaluated(con)
    usable = []
    for row in query_rows(
        con,
        "SELECT spaces.space_id AS space, chosen.* FROM spaces "
        "LEFT JOIN answer_thresholds AS chosen USING (space_id) "
        "WHERE spaces.status = 'evaluated' ORDER BY spaces.space_no",
    ):
        space_id = row["space"]
        if row["status"] is None:
            gaps.append(f"{space_id} has no threshold")
        elif row["status"] != "calibrated" or row["refusal"]:
            gaps.append(f"the threshold of {space_id}: {row['refusal'] or row['reason']}")
        elif not row["dev_unanswerable"] or not row["test_unanswerable"]:
            gaps.append(f"{space_id} was calibrated or tested without unanswerable queries")
        else:
            usable.append(
                f"{space_id} {row['threshold']:.4f} (chosen on {row['dev_split']}; "
                f"{row['test_unanswerable']} unanswerable queries in {row['test_split']})"
            )
    return found(THRESHOLDS, [], gaps, ", ".join(usable))


def examine_budgets(con: duckdb.DuckDBPyConnection) -> Finding:
    """Item 7."""
    rows = query_rows(con, "FROM release_budgets")
    declared = {row["measure"] for row in rows}
    faults, gaps, within = [], not_evaluated(con), []
    for row in rows:
        where = f" of {row['space_id']} ({row['index_name']})" if row["space_id"] else ""
        number = (
            "none, as exact search trains no index"
            if row["measured"] is None
            else f"{row['measured']:.6g}"
        )
        bound = "at least" if row["measure"] == "queries_per_second" else "at most"
        said = f"{row['measure']}{where} is {number}; {bound} {row['budget_limit']:.10g} is allowed"
        if row["status"] == "over":
            faults.append(said)
        elif row["status"] == "not_measured":
            gaps.append(f"{row['measure']}{where} was not measured")
        else:
            within.append(said)
    gaps += [f"no budget for {name}" for name in BUDGETED if name not in declared]
    return found(BUDGETS, faults, gaps, "; ".join(within))


def examine_access(con: duckdb.DuckDBPyConnection) -> Finding:
    """Item 8, counted anew from the results, the canonical lists and each space's own."""
    leaked = con.sql(_LEAKED).fetchall()
    faults = []
    if leaked:
        [space_id, index_name, case_id, item_id] = leaked[0]
        faults.append(
            f"{len(leaked)} results that their subject may not read, e.g. {item_id} for {case_id} "
            f"by {index_name} in {space_id}"
        )
    # No source has a query without groups, so the rule that every search applies is asked itself.
    lists = con.sql(_ACCESS_LISTS).fetchall()
    access = DocumentAccess(
        tuple((frozenset(one), frozenset(two)) for one, two in lists),
        np.arange(len(lists), dtype=np.int32),
    )
    if opened := len(access.rows(access.allowed_pairs(()))):
        faults.append(f"a subject without groups may read by {opened} of {len(lists)} access lists")
    [[results, cases]] = con.sql(
        "SELECT count(*), count(DISTINCT case_id) FROM query_results"
    ).fetchall()
    gaps = not_evaluated(con)
    if not results:
        gaps.append("no query returned anything")
    seen = (
        f"{results} results of {cases} queries, none that its subject may not read; a subject "
        f"without groups may read by none of {len(lists)} access lists"
    )
    return found(ACCESS, faults, gaps, seen if results else "")


def examine_notice(con: duckdb.DuckDBPyConnection, *, vectors_given: bool) -> Finding:
    """Item 11. `vectors_given`: they come from a fixture or a random generator, not from models."""
    names = ", ".join(
        name for [name] in con.sql("SELECT space_id FROM spaces ORDER BY space_no").fetchall()
    )
    if not vectors_given:
        return found(NOTICE, [], [], f"no space is of a fixture; of models: {names}")
    notice = con.sql("SELECT value FROM manifest WHERE key = 'notice'").fetchall()
    if not notice or not (notice[0][0] or "").strip():
        return found(NOTICE, [f"no notice says that {names} are not of models"], [], "")
    return found(NOTICE, [], [], f"not of models: {names}; the release says: {notice[0][0]}")
