"""The laboratory's findings as rows of base tables, and as files between assets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rag_assets.canonical.contracts import canonical_json
from rag_assets.canonical.files import write_parquet
from rag_assets.laboratory.index_benchmarks import IndexTimes
from rag_assets.laboratory.plans import RegisteredPlan
from rag_assets.laboratory.promotion import Promotion
from rag_assets.laboratory.sweep_runs import SweepRow
from rag_assets.laboratory.sweeps import Sweep, plan
from rag_assets.laboratory.verdicts import Verdict, judge, operating_points, pareto_front
from rag_assets.warehouse.base import BASE

SWEEP_TABLES = ("sweep_runs", "sweep_values", "sweep_verdicts", "operating_points")
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class SweepRecord:
    """A sweep's outcome: `tables` by name of base table, and the verdict they hold."""

    verdict: Verdict
    tables: Mapping[str, pa.Table]


def sweep_record(
    sweep: Sweep,
    rows: Sequence[SweepRow],
    registered: RegisteredPlan,
    *,
    space_no: int,
    index_name: str,
) -> SweepRecord:
    """Everything a sweep showed, judged by its plan."""
    verdict = judge(sweep, rows)
    front = set(pareto_front(rows))
    number = {value: at for at, value in enumerate(sweep.values)}
    key = {
        "sweep": sweep.name,
        "space_no": space_no,
        "index_name": index_name,
        "parameter": sweep.parameter,
    }
    runs = [
        {**key, **asdict(row), "value": str(row.value), "value_no": number[row.value]}
        for row in rows
    ]
    values = [
        {
            **key,
            **asdict(value),
            "value": str(value.value),
            "value_no": number[value.value],
            "on_pareto_front": value.value in front,
        }
        for value in verdict.values
    ]
    declared = plan(sweep)
    verdicts = [
        {
            **key,
            "k": sweep.k,
            "seeds": list(sweep.seeds),
            "verdict": verdict.verdict,
            "reason": verdict.reason,
            "stopped_at": _text(verdict.stopped_at),
            "claim": canonical_json(declared["claim"]),
            "stop_rule": canonical_json(declared["stop_rule"]),
            "plan": canonical_json(declared),
            "plan_digest": registered.digest,
            "registered_at": registered.registered_at,
        }
    ]
    points = [
        {
            **key,
            "need": point.need.name,
            "need_p95_ms": point.need.p95_ms,
            "need_min_recall": point.need.min_recall,
            "value": _text(point.value),
            "mean_recall": point.mean_recall,
            "mean_p95_ms": point.mean_p95_ms,
            "reason": point.reason,
        }
        for point in operating_points(sweep, rows)
    ]
    found = dict(zip(SWEEP_TABLES, (runs, values, verdicts, points), strict=True))
    return SweepRecord(verdict, {name: rows_of(name, found[name]) for name in SWEEP_TABLES})


def benchmark_rows(times: Sequence[IndexTimes], space_no: int) -> pa.Table:
    """Rows of base.benchmarks."""
    return rows_of("benchmarks", [{**asdict(one), "space_no": space_no} for one in times])


def promotion_rows(promotions: Sequence[Promotion], space_nos: Mapping[str, int]) -> pa.Table:
    """Rows of base.promotion."""
    rows = [
        {
            **asdict(row),
            "space_no": space_nos[row.space_id],
            "condition_no": number,
            "verdict": promotion.verdict,
        }
        for promotion in promotions
        for number, row in enumerate(promotion.rows)
    ]
    return rows_of("promotion", rows)


def rows_of(table: str, rows: Rows) -> pa.Table:
    """Rows in the schema of a base table; what a row does not have is NULL."""
    schema = BASE[table]
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def write_tables(tables: Mapping[str, pa.Table], folder: Path) -> None:
    for name, table in tables.items():
        write_parquet(table, folder / f"{name}.parquet")


def read_tables(folder: Path, names: Sequence[str]) -> dict[str, pa.Table]:
    return {name: pq.read_table(folder / f"{name}.parquet") for name in names}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
