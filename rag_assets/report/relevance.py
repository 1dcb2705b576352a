"""Spaces and their measures against judgements, as tables; undefined values stay None."""

from __future__ import annotations

import duckdb

from rag_assets.report.comparisons import Comparison
from rag_assets.report.intervals import mean_interval, with_intervals
from rag_assets.report.numbers import change, count, measure, size, yes_no
from rag_assets.report.reading import Row, rows_of
from rag_assets.report.table import Column, Table
from rag_assets.statistics.sentences import MIN_QUERIES

UNDEFINED = (
    "undefined: no query here has a relevant document that its subject may read. "
    "Such queries are left out of every mean; they do not count as 0."
)
# What is asked about first stands where a narrow screen shows it.
_MEANS = (
    Column("nDCG", "mean_ndcg_at_k", mean_interval, numeric=True),
    Column("MRR", "mrr", mean_interval, numeric=True, means="mean reciprocal rank, cut at k"),
    Column(
        "Recall", "mean_recall_at_k", mean_interval, numeric=True, means="of relevant documents"
    ),
    Column("Precision", "mean_precision_at_k", mean_interval, numeric=True),
    Column("queries", "query_count", count, numeric=True),
    Column(
        "defined", "defined_count", count, numeric=True, means="queries that the means are over"
    ),
)


def largest_k(con: duckdb.DuckDBPyConnection) -> int:
    [[k]] = con.sql("SELECT max(k) FROM base.evaluated_k").fetchall()
    return int(k)


_SPACE_FIELDS = (
    Column("status", "state"),
    Column("provider", "provider"),
    Column("model", "model"),
    Column("revision", "revision"),
    Column("dimension", "dimension", count),
    Column("metric", "metric"),
    Column("normalized", "normalized", yes_no),
    Column("documents", "document_count", count),
    Column("queries", "query_item_count", count),
    Column("raw vectors", "estimated_raw_vector_bytes", size),
    Column("signature", "signature"),
)


def spaces(con: duckdb.DuckDBPyConnection) -> Table:
    """Contract and inventory, a column per space: fields are many and spaces few."""
    found = rows_of(
        con,
        "SELECT s.*, i.document_count, i.query_item_count, i.estimated_raw_vector_bytes, "
        "left(s.contract_signature, 12) AS signature "
        "FROM spaces AS s LEFT JOIN space_inventory AS i USING (space_id) ORDER BY space_no",
    )
    for row in found:
        executed = row["status"] == "evaluated"
        row["state"] = "evaluated" if executed else f"not executed: {row['status_reason']}"
    return Table(
        "Contract and inventory",
        (Column("", ""), *(Column(row["space_id"], row["space_id"]) for row in found)),
        [
            {"": field.title}
            | {
                row["space_id"]: None if row[field.name] is None else field.show(row[field.name])
                for row in found
            }
            for field in _SPACE_FIELDS
        ],
        undefined="not known: the space was not executed.",
    )


def measures(con: duckdb.DuckDBPyConnection) -> list[Table]:
    """One table per cut-off: means over the defined queries of each space and index."""
    found = rows_of(
        con,
        "SELECT m.* FROM metric_by_space AS m JOIN spaces USING (space_id) "
        "ORDER BY k, space_no, index_name <> 'exact', index_name",
    )
    note = with_intervals(con, found)
    return [
        Table(
            f"At k = {k}",
            (Column("space", "space_id"), Column("index", "index_name"), *_MEANS),
            [row for row in found if row["k"] == k],
            undefined=UNDEFINED,
            note=note,
        )
        for k in sorted({row["k"] for row in found})
    ]


def subgroup_changes(
    con: duckdb.DuckDBPyConnection,
    old: str,
    new: str,
    index_name: str,
    k: int,
    comparison: Comparison | None,
) -> list[Row]:
    """Subgroups of one audited pair, the largest fall of mean nDCG@k first, undefined ones last.

    `few` marks those with fewer than MIN_QUERIES defined queries; `share` is the change as a part
    of the largest one, for drawing; `against_chance` is the row of the comparison, None without.
    """
    compared = {row["subgroup"]: row for row in comparison.ndcg_rows} if comparison else {}
    found = rows_of(
        con,
        "SELECT * FROM migration_by_subgroup WHERE old_space_id = ? AND new_space_id = ? "
        "AND index_name = ? AND k = ? ORDER BY delta_mean_ndcg_at_k NULLS LAST, subgroup",
        *(old, new, index_name, k),
        needs=["migration_by_subgroup"],
    )
    largest = max((abs(row["delta_mean_ndcg_at_k"] or 0) for row in found), default=0)
    for row in found:
        row["few"] = row["defined_count"] < MIN_QUERIES
        row["against_chance"] = compared.get(row["subgroup"])
        row["share"] = (row["delta_mean_ndcg_at_k"] or 0) / largest if largest else 0
    return found


def subgroups_without_pair(con: duckdb.DuckDBPyConnection, k: int) -> Table | None:
    """Mean nDCG@k by subgroup for each space, the lowest first; None where there is no subgroup."""
    found = rows_of(
        con,
        "SELECT m.* FROM metric_by_subgroup AS m JOIN spaces USING (space_id) WHERE k = ? "
        "ORDER BY mean_ndcg_at_k NULLS LAST, subgroup, space_no, index_name <> 'exact', index_name",
        k,
    )
    if not found:
        return None
    named = (
        Column("subgroup", "subgroup"),
        Column("space", "space_id"),
        Column("index", "index_name"),
    )
    note = with_intervals(con, found)
    return Table(f"At k = {k}", (*named, *_MEANS), found, undefined=UNDEFINED, note=note)


def audit_changes(con: duckdb.DuckDBPyConnection, old: str, new: str) -> Table:
    """New minus old, per index and cut-off."""
    found = rows_of(
        con,
        "SELECT * FROM migration_audit WHERE old_space_id = ? AND new_space_id = ? "
        "ORDER BY index_name <> 'exact', index_name, k",
        *(old, new),
    )
    return Table(
        "New minus old, means over the queries defined in both",
        (
            Column("index", "index_name"),
            Column("k", "k", count, numeric=True),
            Column("queries", "query_count", count, numeric=True),
            Column("defined", "defined_count", count, numeric=True),
            Column("Δ Recall", "delta_mean_recall_at_k", change, numeric=True),
            Column("Δ MRR", "delta_mrr", change, numeric=True),
            Column("Δ nDCG", "delta_mean_ndcg_at_k", change, numeric=True),
            Column(
                "overlap",
                "mean_top_k_jaccard",
                measure,
                numeric=True,
                means="mean Jaccard index of the two top k, as sets",
            ),
        ),
        found,
        undefined="undefined or not compared.",
        note=found[0]["quality_note"],
    )
