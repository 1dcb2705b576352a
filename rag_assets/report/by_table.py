"""The report's pictures, by the table whose numbers they show."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
from markupsafe import Markup

from rag_assets.report import approximate, comparisons, history, intervals
from rag_assets.report.relevance import largest_k


def pictures_by_table(con: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Markup]]:
    """Table -> title -> picture. Left out is what has no defined number or nothing to conclude."""
    k = largest_k(con)
    migrations, indexes = comparisons.migrations(con, k), comparisons.indexes(con, k)
    over = f"means at k = {k} over the evaluations"
    titled = {
        "metric_by_space": {f"means at k = {k}": intervals.means_picture(con, k)},
        "metric_by_subgroup": {f"nDCG@{k} by subgroup": intervals.subgroups_picture(con, k)},
        "migration_audit": _forests(migrations),
        "comparison_statistics": _forests([*migrations, *indexes]),
        "metric_history": {over: history.history_picture(con, k)},
        "index_benchmark": {"recall, latency and size": approximate.benchmark_picture(con)},
    }
    return {
        table: {title: picture for title, picture in pictures.items() if picture}
        for table, pictures in titled.items()
    }


def _forests(found: Iterable[comparisons.Comparison]) -> dict[str, Markup]:
    return {one.title: one.picture for one in found if not one.nothing_to_conclude}
