"""The queries that a migration changed most, with both result lists side by side.

Texts come from result lists alone, which hold only what the query's subject may read; both the
canonical ACL and the space's own are asked once more before a text leaves the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from rag_assets.report.reading import Row, rows_of

SHOWN_RANKS = 10
EXCERPT = 160  # characters
LEFT_OUT = "text left out"


@dataclass(frozen=True, slots=True)
class Result:
    """`other_rank`: where the other list has the document, None where it has not within k.

    `grade` is None for an unjudged document. Without a `text`, `withheld` says why.
    """

    rank: int
    other_rank: int | None
    item_id: str
    grade: int | None
    text: str | None
    withheld: str


@dataclass(frozen=True, slots=True)
class ChangedQuery:
    """`text` is None where texts are left out. `old_count`, `new_count`: results within k."""

    case_id: str
    text: str | None
    subgroups: Sequence[str]
    subject_groups: Sequence[str]
    old_ndcg: float | None
    new_ndcg: float | None
    delta_ndcg: float | None
    jaccard: float | None
    old: Sequence[Result]
    new: Sequence[Result]


def changed_queries(
    con: duckdb.DuckDBPyConnection, old: str, new: str, index_name: str, k: int, *, redact: bool
) -> list[ChangedQuery]:
    """At most ten queries, most changed first, those without any change left out."""
    pair = (old, new, index_name, k)
    found = rows_of(con, _CHANGED, *pair, needs=["migration_changed_queries"])
    listed = rows_of(con, _RESULTS, *pair, needs=["migration_changed_queries"])
    return [
        ChangedQuery(
            case_id=query["case_id"],
            text=None if redact else excerpt(query["query_text"]),
            subgroups=query["subgroups"],
            subject_groups=query["subject_groups"],
            old_ndcg=query["old_ndcg_at_k"],
            new_ndcg=query["new_ndcg_at_k"],
            delta_ndcg=query["delta_ndcg_at_k"],
            jaccard=query["top_k_jaccard"],
            old=_results(listed, query["case_id"], "old", redact=redact),
            new=_results(listed, query["case_id"], "new", redact=redact),
        )
        for query in found
    ]


def excerpt(text: str) -> str:
    """The beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1].rstrip() + "…"


def _results(listed: Sequence[Row], case_id: str, side: str, *, redact: bool) -> list[Result]:
    return [
        Result(
            rank=row["rank"],
            other_rank=row["other_rank"],
            item_id=row["item_id"],
            grade=row["grade"],
            text=None if withheld else excerpt(row["text"]),
            withheld=withheld,
        )
        for row in listed
        if row["case_id"] == case_id and row["side"] == side and row["rank"] <= SHOWN_RANKS
        for withheld in [_withheld(row, redact=redact)]
    ]


def _withheld(row: Row, *, redact: bool) -> str:
    if redact:
        return LEFT_OUT
    if not row["readable"]:
        return "text left out: the query's groups may not read it"
    if not row["same_text"]:
        return "text left out: this space holds another version of it"
    return ""


_CHANGED = """
SELECT
    changed.case_id,
    changed.query_text,
    cases.subgroups,
    cases.subject_groups,
    compared.old_ndcg_at_k,
    compared.new_ndcg_at_k,
    changed.delta_ndcg_at_k,
    changed.top_k_jaccard
FROM migration_changed_queries AS changed
JOIN migration_by_query AS compared USING (old_space_id, new_space_id, index_name, k, case_id)
JOIN base.cases AS cases USING (case_id)
WHERE changed.old_space_id = ? AND changed.new_space_id = ? AND changed.index_name = ?
    AND changed.k = ?
    AND (coalesce(changed.delta_ndcg_at_k, 0) <> 0 OR coalesce(changed.top_k_jaccard, 1) < 1)
ORDER BY changed.change_rank
"""

# Over the documents that the measures are over: all, or those that both spaces hold.
_RESULTS = """
WITH listed AS (
    SELECT
        changed.case_id,
        cases.case_no,
        CASE WHEN ranked.space_no = pairs.old_space_no THEN 'old' ELSE 'new' END AS side,
        ranked.space_no,
        ranked.rank,
        ranked.item_no
    FROM migration_changed_queries AS changed
    JOIN migration_pairs AS pairs USING (old_space_id, new_space_id)
    JOIN base.cases AS cases USING (case_id)
    JOIN base.results AS ranked
        ON ranked.scope = pairs.measures_scope
        AND ranked.space_no IN (pairs.old_space_no, pairs.new_space_no)
        AND ranked.index_name = changed.index_name
        AND ranked.case_no = cases.case_no
        AND ranked.rank <= changed.k
    WHERE changed.old_space_id = ? AND changed.new_space_id = ? AND changed.index_name = ?
        AND changed.k = ?
)
SELECT
    listed.case_id,
    listed.side,
    listed.rank,
    other.rank AS other_rank,
    items.item_id,
    judged.grade,
    items.text,
    list_has_any(items.acl, cases.subject_groups)
        AND list_has_any(held.acl, cases.subject_groups) AS readable,
    held.content_sha256 = items.content_sha256 AS same_text
FROM listed
JOIN base.cases AS cases ON cases.case_no = listed.case_no
JOIN base.items AS items ON items.item_no = listed.item_no
JOIN base.space_items AS held
    ON held.space_no = listed.space_no AND held.item_no = listed.item_no
LEFT JOIN listed AS other
    ON other.case_no = listed.case_no
    AND other.item_no = listed.item_no
    AND other.side <> listed.side
LEFT JOIN base.qrels AS judged
    ON judged.case_no = listed.case_no AND judged.item_no = listed.item_no
ORDER BY listed.case_no, listed.side, listed.rank
"""


def changes_of_ndcg(
    con: duckdb.DuckDBPyConnection, old: str, new: str, index_name: str, k: int
) -> list[float]:
    """The defined changes of nDCG@k of one pair's queries, ascending."""
    found = rows_of(
        con,
        "SELECT delta_ndcg_at_k FROM migration_by_query WHERE old_space_id = ? "
        "AND new_space_id = ? AND index_name = ? AND k = ? AND delta_ndcg_at_k IS NOT NULL "
        "ORDER BY delta_ndcg_at_k",
        *(old, new, index_name, k),
    )
    return [row["delta_ndcg_at_k"] for row in found]
