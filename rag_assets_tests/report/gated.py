"""A release with regression gates, a checklist, decisions, switches and three evaluations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from rag_assets.decisions.items import ITEMS
from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build
from rag_assets_tests.report.test_page import MOVED
from rag_assets_tests.warehouse.examples import MODELS, Example, Held, base_tables

Rows = Sequence[Mapping[str, Any]]
SIGNATURE = "one signature"  # of every space of an example
# The query of every case has the text "where is d?".
ASKED = Example(
    {
        name: {**held, "q": Held(role="query", text="where is d?")}
        for name, held in MOVED.spaces.items()
    },
    MOVED.cases,
    MOVED.results,
    pairs=MOVED.pairs,
)


def at(day: int) -> datetime:
    return datetime(2030, 1, day, 5)


def evaluation(day: int, **given: Any) -> dict[str, Any]:
    """The evaluation `e1` of the first day, and so on."""
    signatures = given.pop("signatures", {"old": SIGNATURE, "new": SIGNATURE})
    return {
        "evaluation_id": f"e{day}",
        "evaluated_at": at(day),
        "dagster_run_id": f"run{day}",
        "data_version": "same",
        "code_version": "same",
        "contract_signatures": json.dumps(signatures),
        "manifest": "{}",
        "is_latest": False,
        "is_previous": False,
    } | given


def means(day: int, space_id: str, ndcg: float | None, recall: float | None) -> dict[str, Any]:
    return {
        "evaluation_id": f"e{day}",
        "space_id": space_id,
        "index_name": "exact",
        "k": 3,
        "mean_ndcg_at_k": ndcg,
        "mean_recall_at_k": recall,
    }


def check(day: int, name: str, **given: Any) -> dict[str, Any]:
    """A check that failed in the evaluation of a day, and quotes the data."""
    outcome = {"table": "items", "column": "text", "expected": "a text", "observed": "QUOTED"}
    outcome |= {"status": "failed", "severity": "error", "failing_count": 1, "sample": ["a"]}
    outcome |= {"meaning": "Every item has a text."}
    return {
        "evaluation_id": f"e{day}",
        "dagster_run_id": f"run{day}",
        "asset": "examples/items",
        "check_name": name,
        "passed": False,
        "severity": "error",
        "evaluated_at": at(day),
        "details": json.dumps({"outcomes": [outcome]}),
    } | given


def gate(number: int, status: str, sentence: str, **given: Any) -> dict[str, Any]:
    return {
        "gate_no": number,
        "space_id": "new",
        "index_name": "exact",
        "measure": "ndcg_at_k",
        "k": 3,
        "rule": "max_drop",
        "bound": 0.02,
        "status": status,
        "sentence": sentence,
        "worse_queries": None,
    } | given


def decision(number: int, item: str, made: str, status: str = "valid") -> dict[str, Any]:
    return {
        "decision_no": number,
        "item": item,
        "decision": made,
        "decided_by": "Ada",
        "decided_at": "2030-01-03T07:00:00+00:00",
        "evaluation_id": "e3",
        "why": f"reason {number} <script>",
        "status": status,
        "reason": None if status == "valid" else "the data changed since evaluation e3",
    }


def switch(number: int, space_id: str, kind: str, **given: Any) -> dict[str, Any]:
    return {
        "switch_no": number,
        "space_id": space_id,
        "contract_signature": SIGNATURE,
        "kind": kind,
        "switched_by": "Grace",
        "switched_at": f"2030-01-0{number}T08:00:00+00:00",
        "why": f"switch {number}",
        "evaluation_id": "e3",
    } | given


def checklist(**statuses: str) -> list[dict[str, Any]]:
    """Every item passed, but for what `statuses` says."""
    return [
        {
            "item_no": number,
            "item": item,
            "status": statuses.get(item, "pass"),
            "evidence": f"evidence {number}",
            "how_to_get_it": f"do {number}",
        }
        for number, item in enumerate(ITEMS, 1)
    ]


GATES = [
    gate(1, "pass", "mean nDCG@3 is 0.815, at least 0.5 as required"),
    gate(2, "not_executed", "mean nDCG@3 of subgroup lost was not examined: nobody is in it"),
    gate(3, "inconclusive", "mean RR@3 fell by 0.100; this may be chance", worse_queries=[]),
    gate(
        4,
        "fail",
        "mean nDCG@3 fell by 0.185, more than the 0.02 allowed",
        worse_queries=["c", "gone", "q3", "q4", "q5", "q6", "q7"],
    ),
]
BASELINE = {
    "suite": "examples",
    "evaluation_id": "e1",
    "evaluated_at": "2030-01-01T05:00:00+00:00",
    "data_version": "same",
    "code_version": "same",
    "contract_signatures": "{}",
    "digest": "d",
    "pinned_by": "Ada",
    "pinned_at": "2030-01-01T06:00:00+00:00",
    "why": "the first good one",
}
# Between the first and the second day the contract of `new` changed; on the second, it had no mean.
EVALUATIONS = [
    evaluation(1, signatures={"old": SIGNATURE, "new": "another"}),
    evaluation(2, data_version="other", is_previous=True),
    evaluation(3, data_version="other", code_version="newer", is_latest=True),
]
METRICS = [
    means(1, "old", 0.75, 0.5),
    means(1, "new", 0.625, 0.5),
    means(2, "old", 0.75, 0.5),
    means(2, "new", None, None),
]


def gated(example: Example = ASKED, **given: Rows) -> duckdb.DuckDBPyConnection:
    """The release; `given` rows take the place of those of base tables."""
    signed = dict.fromkeys(("shadow_and_rollback", "approvals"), "needs_decision")
    rows: dict[str, Rows] = {
        "regression_gates": GATES,
        "baseline": [BASELINE],
        "checklist": checklist(budgets_met="not_executed", content_reconciled="fail", **signed),
        "decisions": [
            decision(0, "quality old:new", "refuse"),
            decision(1, "quality old:new", "approve"),
            decision(2, "approvals", "approve", "expired"),
        ],
        "space_switches": [
            switch(1, "old", "activate"),
            switch(2, "new", "activate"),
            switch(3, "old", "roll_back", forced="another contract"),
        ],
        "evaluations": EVALUATIONS,
        "heartbeats": [
            {"evaluation_id": "e3", "seen_at": at(day), "dagster_run_id": "again"} for day in (4, 5)
        ],
        "history_metrics": METRICS,
        "history_checks": [
            check(1, "passing", passed=True),
            check(2, "warning", severity="warn"),
            check(2, "reading", evaluation_id=None),
        ],
        "checks": [
            {"check_name": "regression_gates", "asset": "examples/regression_gates"}
            | {"passed": False, "severity": "error", "evaluated_at": at(3), "details": "{}"}
        ],
        **given,
    }
    made = {name: pa.Table.from_pylist(list(r), schema=BASE[name]) for name, r in rows.items()}
    con = duckdb.connect()
    build(con, {**base_tables(example), **made}, MODELS)
    return con
