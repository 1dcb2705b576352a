"""ANN recall in SQL: against exact results, apart from relevance, undefined where it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from rag_assets.laboratory.evidence import judge_indexes
from rag_assets.laboratory.promotion import Thresholds
from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build
from rag_assets_tests.warehouse.examples import MODELS, Case, Example, Held, base_tables, row, rows

IDS = ["a", "b", "c", "d", "e", "f"]
EXAMPLE = Example(
    spaces={"s": {**{item_id: Held() for item_id in IDS}, "q": Held(role="query")}},
    cases={"one": Case({"a": 1, "b": 3}), "nobody": Case({"a": 1}), "judged not": Case({"a": 0})},
    results={},
    ks=(2, 4),
)
STEP = 2.0**-30
# What exact search found for every case: d and e tie on the grid, though not in their last bits.
EXACT = [("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.5), ("e", 0.5 - STEP / 8), ("f", 0.1)]


def built(found: Sequence[str], eligible: int = 6, **more: Any) -> duckdb.DuckDBPyConnection:
    """The models over exact results and `found` by index "ivf" for case "one"; E = `eligible`."""
    tables = base_tables(EXAMPLE)
    item_no = {i["item_id"]: i["item_no"] for i in tables["items"].to_pylist()}
    case_no = {c["case_id"]: c["case_no"] for c in tables["cases"].to_pylist()}
    true = dict(EXACT)
    results = [
        {"index_name": name, "case_no": case_no["one"], "rank": rank, "item_no": item_no[item_id]}
        | {"score": score, "exact_score": true[item_id], "scope": 0, "space_no": 0}
        for name, ranked in (
            ("exact", EXACT[:eligible]),
            ("ivf", [(item_id, 1 - place / 10) for place, item_id in enumerate(found)]),
        )
        for rank, (item_id, score) in enumerate(ranked, 1)
    ]
    searches = [
        {"space_no": 0, "index_name": name, "case_no": case_no[case_id], "eligible_count": count}
        | {"nprobe": 3 if name == "ivf" else None, "path": "index", "grid_step": STEP}
        for name in ("exact", "ivf")
        for case_id, count in (("one", eligible), ("nobody", 0))
    ]
    given = {
        "results": results,
        "searches": searches,
        "indexes": [{"space_no": 0, "index_name": name} for name in ("exact", "ivf")],
        **more,
    }
    made = {name: pa.Table.from_pylist(listed, schema=BASE[name]) for name, listed in given.items()}
    con = duckdb.connect()
    build(con, {**tables, **made}, MODELS)
    return con


def one(con: duckdb.DuckDBPyConnection, k: int) -> dict[str, Any]:
    return row(con, f"FROM ann_recall_by_query WHERE case_id = 'one' AND k = {k}")


def test_recall_is_the_share_of_the_exact_results_that_came_back() -> None:
    con = built(["a", "c", "d", "f"])
    # k = 2: exact a, b; found a of the first two. k = 4: exact a, b, c, d; found a, c, d.
    assert one(con, 2)["ann_recall_at_k"] == 1 / 2
    assert one(con, 4)["ann_recall_at_k"] == 3 / 4
    assert one(con, 4)["short_results"] == 0
    assert one(con, 4)["nprobe"] == 3


def test_a_tie_with_the_kth_counts_only_in_the_tie_aware_form() -> None:
    # k = 4: exact a, b, c, d. e ties with d on the grid, f does not.
    found = one(built(["a", "b", "c", "e"]), 4)
    assert found["ann_recall_at_k"] == 3 / 4
    assert found["tie_aware_ann_recall_at_k"] == 1.0
    assert one(built(["a", "b", "c", "f"]), 4)["tie_aware_ann_recall_at_k"] == 3 / 4


def test_fewer_results_are_low_recall_and_counted_apart() -> None:
    found = one(built(["a"]), 4)
    assert (found["ann_recall_at_k"], found["short_results"]) == (1 / 4, 3)
    nothing = one(built([]), 4)
    assert (nothing["ann_recall_at_k"], nothing["short_results"]) == (0.0, 4)


def test_with_fewer_readable_documents_than_k_all_of_them_are_the_truth() -> None:
    # E = 3: K = min(4, 3); exact a, b, c.
    found = one(built(["c", "a"], eligible=3), 4)
    assert (found["ann_recall_at_k"], found["short_results"]) == (2 / 3, 1)
    # 3 of 6 documents are half.
    assert (found["selectivity"], found["selectivity_band"]) == (0.5, "3 up to 50%")


def test_a_subject_that_may_read_nothing_has_no_recall() -> None:
    con = built(["a", "b"])
    found = row(con, "FROM ann_recall_by_query WHERE case_id = 'nobody' AND k = 2")
    assert (found["status"], found["ann_recall_at_k"]) == ("empty_eligible", None)
    mean = row(con, "FROM ann_recall_by_space WHERE k = 2")
    assert (mean["query_count"], mean["defined_count"], mean["empty_eligible_count"]) == (2, 1, 1)
    assert mean["mean_ann_recall_at_k"] == 1.0


def test_what_the_approximation_cost_in_ndcg_stands_beside_recall() -> None:
    # Ideal at k = 2: b (gain 7) then a (gain 1). Exact: a, b. The index: b, a, which is ideal.
    found = one(built(["b", "a"]), 2)
    exact = (1 + 7 / 1.5849625007211562) / (7 + 1 / 1.5849625007211562)
    assert found["exact_ndcg_at_k"] == pytest.approx(exact, abs=1e-12)
    assert found["ndcg_at_k"] == 1.0
    assert found["ndcg_cost"] == pytest.approx(exact - 1, abs=1e-12)
    assert found["ann_recall_at_k"] == 1.0


def test_an_index_that_was_not_executed_has_rows_without_numbers() -> None:
    missing = {"space_no": 0, "index_name": "hnsw", "kind": "hnsw", "params": "{}", "seed": 1}
    missing |= {"status": "not_executed", "status_reason": "no engine"}
    con = built(["a", "b"], index_builds=[missing])
    found = rows(con, "FROM ann_recall_by_query WHERE index_name = 'hnsw' AND k = 2")
    assert {(r["status"], r["ann_recall_at_k"]) for r in found} == {("not_executed", None)}
    assert len(found) == 3
    timed = row(con, "FROM index_benchmark WHERE index_name = 'hnsw'")
    assert (timed["status"], timed["status_reason"], timed["p50_ms"]) == (
        "not_executed",
        "no engine",
        None,
    )


def test_ratios_of_the_benchmark_are_to_exact_search_of_the_same_run() -> None:
    build_row = {"space_no": 0, "index_name": "ivf", "kind": "ivf_pq", "params": '{"seed": 7}'}
    build_row |= {"seed": 7, "status": "built", "build_ms": 5.0}
    build_row |= {"index_bytes": 48, "memory_bytes": 60}
    times = [
        {"space_no": 0, "index_name": name, "k": 2, "query_count": 1, "rounds": 5, "threads": 2}
        | {"best_p50_ms": best}
        for name, best in (("exact", 6.0), ("ivf", 2.0))
    ]
    con = built(["a", "f"], index_builds=[build_row], benchmarks=times)
    # 6 documents of 4 float32: 96 bytes. 6 ms / 2 ms; 96 / 48; 48 / 6.
    found = row(con, "FROM index_benchmark WHERE index_name = 'ivf'")
    assert (found["speedup"], found["compression"], found["bytes_per_vector"]) == (3.0, 2.0, 8.0)
    assert found["mean_ann_recall_at_k"] == 1 / 2
    exact = row(con, "FROM index_benchmark WHERE index_name = 'exact'")
    assert (exact["index_bytes"], exact["speedup"], exact["params"]) == (96, 1.0, None)
    [gate] = judge_indexes(con, Thresholds(), "d" * 64)
    [gain] = [it for it in gate.rows if it.condition == "latency_or_memory_gain"]
    assert gain.evidence == "latency gain 3.00, memory gain 1.60"  # 6 ms / 2 ms; 96 / 60
