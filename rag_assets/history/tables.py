"""The history as base tables of a release, and a built release as rows of the history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from rag_assets.canonical.contracts import canonical_json
from rag_assets.history.blocked import blocked_rows
from rag_assets.history.evaluations import (
    Evaluation,
    Heartbeat,
    rows_of_earlier,
    snapshot_of,
)
from rag_assets.warehouse.base import (
    BASE,
    HISTORY_AUDITS,
    HISTORY_CHECKS,
    HISTORY_METRICS,
    SNAPSHOT_ITEMS,
    SNAPSHOT_SPACE,
)

_KEPT = {
    "metrics": ("metric_history", HISTORY_METRICS),
    "audits": ("audit_history", HISTORY_AUDITS),
    "checks": ("check_history", HISTORY_CHECKS),
}
_SNAPSHOT = {
    "items": f"SELECT {', '.join(SNAPSHOT_ITEMS)} FROM base.items ORDER BY item_no",
    "cases": "SELECT case_id, case_digest FROM case_digests",
    "spaces": f"SELECT space_id, {', '.join(SNAPSHOT_SPACE)} FROM base.spaces ORDER BY space_no",
}


def history_tables(
    folder: Path,
    earlier: Sequence[Evaluation],
    evaluation: Evaluation,
    beats: Sequence[Heartbeat],
) -> dict[str, pa.Table]:
    """The history's base tables while `evaluation` is the latest, recorded in `folder` or not yet.

    Rows of `evaluation` itself are left out: the tables of the release hold them anew.
    """
    before = [other for other in earlier if other.evaluation_id != evaluation.evaluation_id]
    previous = before[-1] if before else None
    tables = {
        f"history_{name}": rows_of_earlier(folder, before, name, schema)
        for name, (_, schema) in _KEPT.items()
    }
    tables["history_checks"] = pa.concat_tables(
        [tables["history_checks"], blocked_rows(folder, HISTORY_CHECKS)]
    )
    for name in _SNAPSHOT:
        schema = BASE[f"previous_{name}"]
        tables[f"previous_{name}"] = (
            snapshot_of(folder, previous, name, schema) if previous else schema.empty_table()
        )
    rows = [
        {
            "evaluation_id": one.evaluation_id,
            "evaluated_at": one.evaluated_at.replace(tzinfo=None),
            "dagster_run_id": one.run_id,
            "data_version": one.data_version,
            "code_version": one.code_version,
            "contract_signatures": canonical_json(dict(one.signatures)),
            "manifest": canonical_json(dict(one.manifest)),
            "is_latest": one is evaluation,
            "is_previous": one is previous,
        }
        for one in [*before, evaluation]
    ]
    seen = [
        {
            "evaluation_id": beat.evaluation_id,
            "seen_at": beat.seen_at.replace(tzinfo=None),
            "dagster_run_id": beat.run_id,
        }
        for beat in beats
    ]
    tables["evaluations"] = pa.Table.from_pylist(rows, schema=BASE["evaluations"])
    tables["heartbeats"] = pa.Table.from_pylist(seen, schema=BASE["heartbeats"])
    return tables


def rows_to_keep(
    connection: duckdb.DuckDBPyConnection, evaluation: Evaluation
) -> dict[str, pa.Table]:
    """What the history keeps of a built release, by name, for `evaluations.record`."""
    return {
        name: connection.sql(
            f"SELECT {', '.join(schema.names)} FROM {table} WHERE evaluation_id = ?",
            params=[evaluation.evaluation_id],
        ).to_arrow_table()
        for name, (table, schema) in _KEPT.items()
    }


def snapshot_to_keep(connection: duckdb.DuckDBPyConnection) -> dict[str, pa.Table]:
    """What a built release looked at, by name, for `evaluations.record`."""
    return {name: connection.sql(query).to_arrow_table() for name, query in _SNAPSHOT.items()}
