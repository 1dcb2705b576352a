"""Measured queries, baselines and gates for tests, written briefly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rag_assets.regression.baseline import Baseline, Header
from rag_assets.regression.gates import Gate, Regression, declared_regression
from rag_assets.regression.judging import judge_gates
from rag_assets.regression.looking import Today
from rag_assets.regression.rows import BY_QUERY, MEASURES

HEADER = Header(
    suite="s",
    evaluation_id="20261130T215500Z-1a2b3c4d",
    evaluated_at="2026-11-30T21:55:00+00:00",
    data_version="da7a",
    code_version="c0de",
    contract_signatures={"one": "51"},
    pinned_by="Ada",
    pinned_at="2026-11-30T22:00:00+00:00",
    why="the first one",
)
Values = Mapping[str, float | None] | Sequence[float | None]


def measured(
    values: Values,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    space_id: str = "one",
    index_name: str = "exact",
    k: int = 10,
    measure: str | None = None,
) -> pa.Table:
    """Rows of BY_QUERY. A list's queries are q00, q01, ...; all measures have the value, or only
    `measure`, the others being 1. `groups` maps a query to its subgroups."""
    named = values if isinstance(values, Mapping) else {f"q{n:02}": v for n, v in enumerate(values)}
    rows = [
        {"space_id": space_id, "index_name": index_name, "case_id": case_id, "k": k}
        | {each: value if measure in (None, each) else 1.0 for each in MEASURES}
        | {"subgroups": list((groups or {}).get(case_id, []))}
        for case_id, value in named.items()
    ]
    return pa.Table.from_pylist(rows, schema=BY_QUERY)


def baseline(*rows: pa.Table) -> Baseline:
    return Baseline(HEADER, pa.concat_tables(rows))


def gate(**given: Any) -> Gate:
    """A gate on nDCG@10 of exact search over all queries of every space, where not said."""
    defaults = {"measure": "ndcg_at_k", "k": 10, "index_name": "exact"}
    nothing = dict.fromkeys(("floor", "max_drop", "subgroup", "space_ids"))
    return Gate(**(nothing | defaults | given))


def regression(*gates: Gate, level: float = 0.05, **given: Any) -> Regression:
    where = {"ks": [3, 10], "index_names": {"one": ["exact"]}} | given
    return declared_regression(level, gates, **where)


def judged(
    gates: Regression,
    today: pa.Table,
    pinned: Baseline | None = None,
    reasons: Mapping[tuple[str, str | None], str] | None = None,
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = judge_gates(gates, Today(today, reasons or {}), pinned).to_pylist()
    return rows
