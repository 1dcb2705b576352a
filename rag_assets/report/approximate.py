"""Approximate indexes: recall against exact search, cost, sweeps and what they are fit for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
from markupsafe import Markup

from rag_assets.report.intervals import intervals_of, mean_interval, with_intervals
from rag_assets.report.numbers import change, count, measure, ratio, significant, size, stated
from rag_assets.report.pictures import index_costs, tradeoff
from rag_assets.report.reading import Row, rows_of
from rag_assets.report.table import Column, Table

_UNDEFINED = (
    "undefined: recall where no query may see any document, the cost in nDCG where no query has "
    "judgements. Neither counts as 0."
)
_RECALL = (
    Column("k", "k", count, numeric=True),
    Column("queries", "query_count", count, numeric=True),
    Column("defined", "defined_count", count, numeric=True),
    Column("mean ANN recall", "mean_ann_recall_at_k", mean_interval, numeric=True),
    Column("lowest", "min_ann_recall_at_k", measure, numeric=True),
    Column("short lists", "short_cases", count, numeric=True, means="queries with too few results"),
    Column(
        "nDCG cost",
        "mean_ndcg_cost",
        change,
        numeric=True,
        means="mean nDCG of exact search minus that of the index",
    ),
)
_INDEX = (Column("space", "space_id"), Column("index", "index_name"))


@dataclass(frozen=True, slots=True)
class SweepReport:
    """One sweep. `verdict` is in words; `picture` is an SVG element."""

    name: str
    space_id: str
    index_name: str
    parameter: str
    verdict: str
    reason: str
    plan_digest: str
    registered_at: str
    picture: str
    values: Table
    points: Table | None


def recall_tables(con: duckdb.DuckDBPyConnection) -> list[Table]:
    """Recall against exact search by index, then by the share of documents a query may see."""
    by_space = rows_of(
        con,
        "SELECT a.* FROM ann_recall_by_space AS a JOIN spaces USING (space_id) "
        "ORDER BY space_no, index_name, k",
        needs=["ann_recall_by_space"],
    )
    by_band = rows_of(
        con,
        # The digit in front of a band is there to sort by.
        "SELECT a.*, regexp_replace(selectivity_band, '^[0-9]+ ', '') AS band "
        "FROM ann_recall_by_selectivity AS a JOIN spaces USING (space_id) "
        "ORDER BY space_no, index_name, k, selectivity_band",
        needs=["ann_recall_by_selectivity"],
    )
    note = with_intervals(con, by_space)
    band = Column("documents in reach", "band", means="share that the query's groups may read")
    tables = [
        Table("By index", (*_INDEX, *_RECALL), by_space, _UNDEFINED, note),
        Table(
            "By selectivity of the access filter", (*_INDEX, band, *_RECALL), by_band, _UNDEFINED
        ),
    ]
    return [table for table in tables if table.rows]


def _benchmark_rows(con: duckdb.DuckDBPyConnection) -> list[Row]:
    return rows_of(
        con,
        "SELECT b.* FROM index_benchmark AS b JOIN spaces USING (space_id) "
        "WHERE space_id IN (SELECT space_id FROM index_benchmark WHERE index_name <> 'exact') "
        "ORDER BY space_no, b.index_name <> 'exact', b.index_name",
        needs=["index_benchmark"],
    )


def benchmark_picture(con: duckdb.DuckDBPyConnection) -> Markup:
    """Recall, latency and size of each index, exact ones too; "" where nothing was timed."""
    rows = _benchmark_rows(con)
    known = intervals_of(con)
    for row in rows:
        row["label"] = f"{row['space_id']}, {row['index_name']}"
        key = (row["space_id"], row["index_name"], None, "ann_recall_at_k", row["k"])
        found = known.get(key, {})
        row["recall_low"], row["recall_high"] = (
            found.get(end) for end in ("interval_low", "interval_high")
        )
    return index_costs(rows, "benchmark")


def benchmark(con: duckdb.DuckDBPyConnection) -> Table | None:
    """What each index costs; None where nothing was timed."""
    rows = _benchmark_rows(con)
    if not rows:
        return None
    for row in rows:
        row["state"] = row["status"].replace("_", " ")
        if row["status_reason"]:
            row["state"] += f": {row['status_reason']}"
    times = {(r["k"], r["query_count"], r["rounds"]) for r in rows if r["rounds"] is not None}
    runs = "; ".join(
        f"{queries:,} queries, {rounds} rounds, k = {k}" for k, queries, rounds in sorted(times)
    )
    notes = list(dict.fromkeys(row["note"] for row in rows if row["note"]))
    return Table(
        "Benchmark",
        (
            *_INDEX,
            Column("ANN recall", "mean_ann_recall_at_k", measure, numeric=True),
            Column("p50 ms", "p50_ms", significant, numeric=True),
            Column("p95 ms", "p95_ms", significant, numeric=True),
            Column("p99 ms", "p99_ms", significant, numeric=True),
            Column("speed", "speedup", ratio, numeric=True, means="times as fast as exact search"),
            Column("queries/s", "queries_per_second", significant, numeric=True),
            Column("size", "index_bytes", size, numeric=True),
            Column(
                "smaller", "compression", ratio, numeric=True, means="raw vectors by index bytes"
            ),
            Column("build ms", "build_ms", significant, numeric=True),
            *([] if all(row["status"] == "ok" for row in rows) else [Column("status", "state")]),
        ),
        rows,
        undefined="not measured, or not a property of exact search.",
        note=" ".join(
            [
                "Single queries on one thread; speed compares each query's fastest call, measured "
                f"in one run with exact search ({runs or 'not timed'}). Times of different spaces "
                "or releases cannot be compared.",
                *notes,
                *(
                    f"{row['index_name']} on {row['space_id']}: {_parameters(row['params'])}."
                    for row in rows
                    if row["params"]
                ),
            ]
        ),
    )


def _parameters(params: str) -> str:
    """The parameters that are set, in words."""
    return ", ".join(
        f"{name} {json.dumps(value) if isinstance(value, (dict, list)) else value}"
        for name, value in sorted(json.loads(params).items())
        if name != "kind" and value is not None and value is not False
    )


def sweeps(con: duckdb.DuckDBPyConnection) -> list[SweepReport]:
    verdicts = rows_of(con, "SELECT * FROM sweep_verdicts ORDER BY ALL", needs=["sweep_verdicts"])
    return [_sweep(con, verdict, number) for number, verdict in enumerate(verdicts, 1)]


def _sweep(con: duckdb.DuckDBPyConnection, verdict: Row, number: int) -> SweepReport:
    name, parameter = verdict["sweep"], verdict["parameter"]
    key = (name, verdict["space_id"], verdict["index_name"])
    of_sweep = "WHERE sweep = ? AND space_id = ? AND index_name = ?"
    values = rows_of(con, f"SELECT * FROM sweep_values {of_sweep}", *key)
    runs = rows_of(con, f"SELECT * FROM sweep_results {of_sweep}", *key)
    needs = rows_of(con, f"SELECT * FROM operating_points {of_sweep} ORDER BY need", *key)
    return SweepReport(
        *key,
        parameter,
        verdict["verdict"].replace("_", " "),
        verdict["reason"],
        verdict["plan_digest"],
        verdict["registered_at"],
        tradeoff(verdict, runs, values, needs, f"sweep{number}"),
        _values(parameter, values),
        _points(parameter, needs) if needs else None,
    )


def _values(parameter: str, values: Sequence[Row]) -> Table:
    for value in values:
        value["front"] = "yes" if value["on_pareto_front"] else "no"
    return Table(
        f"Values of {parameter}",
        (
            Column(parameter, "value", numeric=True),
            Column("seeds", "seeds", count, numeric=True),
            Column("failed", "failed", count, numeric=True),
            Column("mean ANN recall", "mean_ann_recall", measure, numeric=True),
            Column("lowest seed", "min_ann_recall", measure, numeric=True),
            Column("highest seed", "max_ann_recall", measure, numeric=True),
            Column("p95 ms", "mean_p95_ms", significant, numeric=True, means="pooled"),
            Column(
                "best p95 ms",
                "mean_best_p95_ms",
                significant,
                numeric=True,
                means="each query at its fastest",
            ),
            Column("Pareto front", "front"),
        ),
        values,
        undefined="undefined: no seed succeeded at this value.",
    )


def _points(parameter: str, needs: Sequence[Row]) -> Table:
    return Table(
        "Operating points",
        (
            Column("need", "need"),
            Column("p95 at most, ms", "need_p95_ms", stated, numeric=True),
            Column("recall at least", "need_min_recall", stated, numeric=True),
            Column(parameter, "value", numeric=True),
            Column("mean ANN recall", "mean_ann_recall", measure, numeric=True),
            Column("p95 ms", "mean_p95_ms", significant, numeric=True),
            Column("why", "reason"),
        ),
        needs,
        undefined="no value serves this need.",
    )
