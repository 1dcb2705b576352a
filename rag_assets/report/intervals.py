"""Means with the intervals of metric_intervals: in the cells of tables, and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import duckdb
from markupsafe import Markup, escape

from rag_assets.report.interval_pictures import means, subgroup_means
from rag_assets.report.numbers import interval, measure
from rag_assets.report.reading import Row, rows_of
from rag_assets.statistics.sentences import MIN_QUERIES

# Column -> measure, against judgements in the order in which they are drawn; then all.
RELEVANCE: Mapping[str, str] = {
    "mean_ndcg_at_k": "ndcg_at_k",
    "mrr": "reciprocal_rank",
    "mean_recall_at_k": "recall_at_k",
    "mean_precision_at_k": "precision_at_k",
}
COLUMNS = {**RELEVANCE, "mean_ann_recall_at_k": "ann_recall_at_k"}
NOTE = "Small numbers: 95% interval of the mean, by resampling the queries."
FEW_NOTE = (
    f"A mean over fewer than {MIN_QUERIES} queries stands without an interval: nothing can be "
    "concluded from so few."
)
MeanInterval: TypeAlias = tuple[float, Any, Any]
_Key: TypeAlias = tuple[str, str, str | None, str, int]


def intervals_of(con: duckdb.DuckDBPyConnection) -> dict[_Key, Row]:
    """(space, index, subgroup or None, measure, k) -> its row of metric_intervals."""
    found = rows_of(con, "SELECT * FROM metric_intervals", needs=["metric_intervals"])
    names = ("space_id", "index_name", "subgroup", "measure", "k")
    return {tuple(row[name] for name in names): row for row in found}


def with_intervals(con: duckdb.DuckDBPyConnection, rows: Sequence[Row]) -> str:
    """Give each mean of `rows` its interval, in place: `mean_interval` shows it. The note for them.

    Rows have space_id, index_name, k, perhaps a subgroup, and some of COLUMNS.
    """
    known = intervals_of(con)
    notes = set()
    for row in rows:
        for column, name in COLUMNS.items():
            if row.get(column) is None:
                continue
            key = (row["space_id"], row["index_name"], row.get("subgroup"), name, row["k"])
            found = known.get(key, {})
            low, high = found.get("interval_low"), found.get("interval_high")
            row[column] = (row[column], low, high)
            if found:
                notes.add(FEW_NOTE if low is None else NOTE)
    return " ".join(note for note in (NOTE, FEW_NOTE) if note in notes)


def mean_interval(value: MeanInterval | float | None) -> str:
    """A mean above its interval, where it has one."""
    if not isinstance(value, tuple):
        return measure(value)
    mean, low, high = value
    if low is None:
        return measure(mean)
    return escape(measure(mean)) + Markup('<small class="interval">{}</small>').format(
        interval(low, high)
    )


def means_picture(con: duckdb.DuckDBPyConnection, k: int) -> Markup:
    """Every index of every space under each measure against judgements, at one k."""
    known = intervals_of(con)
    rows = rows_of(
        con,
        "SELECT DISTINCT space_no, space_id, index_name, index_name <> 'exact' AS approximate "
        "FROM metric_by_space JOIN spaces USING (space_id) "
        "ORDER BY space_no, approximate, index_name",
    )
    for row in rows:
        row["label"] = arm(row["space_id"], row["index_name"])
        for name in RELEVANCE.values():
            row[name] = known.get((row["space_id"], row["index_name"], None, name, k))
    return means(rows, list(RELEVANCE.values()), "means")


def subgroups_picture(con: duckdb.DuckDBPyConnection, k: int) -> Markup:
    """Mean nDCG@k by subgroup under exact search, the subgroup with the lowest mean first."""
    known = {
        key: row
        for key, row in intervals_of(con).items()
        if key[1] == "exact" and key[2] is not None and key[3:] == ("ndcg_at_k", k)
    }
    spaces = rows_of(con, "SELECT space_id FROM spaces ORDER BY space_no")
    shown = [row["space_id"] for row in spaces if any(key[0] == row["space_id"] for key in known)]
    lowest: dict[str, float] = {}
    for (_, _, subgroup, _, _), row in known.items():
        if subgroup is not None and row["mean"] is not None:
            lowest[subgroup] = min(row["mean"], lowest.get(subgroup, 1.0))
    rows = [
        {"subgroup": subgroup}
        | {space_id: known.get((space_id, "exact", subgroup, "ndcg_at_k", k)) for space_id in shown}
        for subgroup in sorted(lowest, key=lambda name: (lowest[name], name))
    ]
    return subgroup_means(rows, shown, f"mean nDCG@{k}, exact search", "subgroups")


def arm(space_id: str, index_name: str) -> str:
    """How a picture names an index of a space; a space alone stands for exact search in it."""
    return space_id if index_name == "exact" else f"{space_id}, {index_name}"
