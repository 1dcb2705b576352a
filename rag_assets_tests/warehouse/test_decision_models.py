"""The tables of decisions: budgets beside measurements, the active space, switches, signatures."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build
from rag_assets_tests.warehouse.examples import (
    DOCUMENTS,
    MODELS,
    QUERY,
    Example,
    base_tables,
    rows,
)

EXAMPLE = Example(
    spaces={"s": DOCUMENTS | QUERY, "t": DOCUMENTS | QUERY, "u": DOCUMENTS | QUERY},
    cases={},
    results={},
    not_executed={"u": "no key"},
)


def with_rows(**tables: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    base = base_tables(EXAMPLE)
    base |= {name: pa.Table.from_pylist(found, BASE[name]) for name, found in tables.items()}
    con = duckdb.connect()
    build(con, base, MODELS)
    return con


def serving(index_name: str) -> dict[str, list[dict[str, Any]]]:
    """`s` is served by an index that was timed, `t` by exact search that was not."""
    return {
        "default_indexes": [
            {"space_no": 0, "index_name": index_name},
            {"space_no": 1, "index_name": "exact"},
            {"space_no": 2, "index_name": "exact"},
        ],
        "index_builds": [
            {
                "space_no": 0,
                "index_name": "hnsw",
                "kind": "hnsw",
                "params": "{}",
                "seed": 1,
                "status": "built",
                "build_ms": 80.0,
                "index_bytes": 500,
                "memory_bytes": 500,
            }
        ],
        "benchmarks": [
            {
                "space_no": 0,
                "index_name": "hnsw",
                "k": 3,
                "query_count": 5,
                "rounds": 5,
                "p95_ms": 4.0,
                "queries_per_second": 250.0,
                "threads": 1,
            }
        ],
    }


def budget(measure: str, limit: float, **changes: Any) -> dict[str, Any]:
    return {"measure": measure, "budget_limit": limit, "estimate": None, "source": None, **changes}


@pytest.mark.parametrize(
    ("measure", "limit", "measured", "status"),
    [
        ("p95_ms", 4.0, 4.0, "within"),
        ("p95_ms", 3.9, 4.0, "over"),
        ("queries_per_second", 250.0, 250.0, "within"),
        ("queries_per_second", 251.0, 250.0, "over"),
        ("index_bytes", 500.0, 500.0, "within"),
        ("index_bytes", 499.0, 500.0, "over"),
        ("build_ms", 80.0, 80.0, "within"),
        ("build_ms", 79.0, 80.0, "over"),
    ],
)
def test_a_budget_bounds_what_the_default_index_was_measured_at(
    measure: str, limit: float, measured: float, status: str
) -> None:
    con = with_rows(budgets=[budget(measure, limit, source="ops")], **serving("hnsw"))
    found = rows(con, "FROM release_budgets WHERE space_id = 's'")
    assert found == [
        {
            "space_id": "s",
            "index_name": "hnsw",
            "measure": measure,
            "budget_limit": limit,
            "measured": measured,
            "status": status,
            "source": "ops",
        }
    ]


def test_what_was_not_measured_is_unknown_and_exact_search_trains_no_index() -> None:
    con = with_rows(
        budgets=[budget(name, 1e9) for name in ("p95_ms", "build_ms", "index_bytes")],
        **serving("hnsw"),
    )
    found = {
        row["measure"]: (row["measured"], row["status"])
        for row in rows(con, "FROM release_budgets WHERE space_id = 't'")
    }
    # Exact search keeps the raw vectors: 4 documents of 4 float32 components.
    assert found == {
        "p95_ms": (None, "not_measured"),
        "build_ms": (None, "within"),
        "index_bytes": (64, "within"),
    }
    assert rows(con, "FROM release_budgets WHERE space_id = 'u'") == []  # not executed


def test_cost_is_an_estimate_for_the_suite() -> None:
    for estimate, status in ((40.0, "within"), (41.0, "over")):
        con = with_rows(budgets=[budget("cost_per_month", 40.0, estimate=estimate, source="bill")])
        [row] = rows(con, "FROM release_budgets")
        assert (row["space_id"], row["measured"], row["status"]) == (None, estimate, status)


def switch(number: int, space_id: str, kind: str = "activate") -> dict[str, Any]:
    return {
        "switch_no": number,
        "space_id": space_id,
        "contract_signature": "c",
        "kind": kind,
        "switched_by": "Ada",
        "switched_at": f"2026-12-0{number}T00:00:00+00:00",
        "why": "ready",
        "evaluation_id": f"e{number}",
        "forced": None,
    }


def test_the_active_space_is_that_of_the_last_switch_and_one_row_in_any_case() -> None:
    [none] = rows(with_rows(), "FROM active_space")
    assert set(none.values()) == {None}
    con = with_rows(space_switches=[switch(2, "t"), switch(3, "s", "roll_back"), switch(1, "s")])
    [active] = rows(con, "FROM active_space")
    assert active == {
        "space_id": "s",
        "since": "2026-12-03T00:00:00+00:00",
        "switched_by": "Ada",
        "why": "ready",
        "evaluation_id": "e3",
        "contract_signature": "c",
    }
    assert [row["space_id"] for row in rows(con, "FROM active_space_log")] == ["s", "t", "s"]
