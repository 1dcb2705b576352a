"""Measures in SQL: values worked out by hand, undefined cases, subgroups, and determinism."""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from rag_assets.warehouse.base import BASE
from rag_assets.warehouse.build import build, empty_table
from rag_assets_tests.warehouse.examples import (
    DOCUMENTS,
    MODELS,
    QUERY,
    Case,
    Example,
    Held,
    built,
    row,
    rows,
)

MEASURES = ("recall_at_k", "precision_at_k", "reciprocal_rank", "ndcg_at_k")

ONE_SPACE = Example(
    spaces={"s": {**DOCUMENTS, **QUERY}},
    cases={
        "graded": Case({"a": 3, "b": 1}, subgroups=("short", "graded")),
        "no relevant": Case({"a": 0}, subgroups=("short",)),
        "no results": Case({"c": 2}),
    },
    results={(0, "s", "graded"): ["c", "a", "d", "b"], (0, "s", "no relevant"): ["a"]},
    ks=(1, 2, 4),
)


def measures(con: duckdb.DuckDBPyConnection, case_id: str, k: int) -> list[float | None]:
    found = row(con, f"FROM metric_by_query WHERE case_id = '{case_id}' AND k = {k}")
    return [found[name] for name in MEASURES]


def test_a_graded_case_has_the_values_worked_out_by_hand() -> None:
    con = built(ONE_SPACE)
    # Ranked c a d b; a has gain 2^3 - 1 = 7, b has gain 2^1 - 1 = 1.
    assert measures(con, "graded", 1) == [0.0, 0.0, 0.0, 0.0]
    # k = 2: a at rank 2. DCG 7 / log2(3); ideal a, b: 7 + 1 / log2(3).
    at_2 = (7 / math.log2(3)) / (7 + 1 / math.log2(3))
    assert measures(con, "graded", 2) == [1 / 2, 1 / 2, 1 / 2, pytest.approx(at_2, abs=1e-15)]
    # k = 4: b at rank 4 adds 1 / log2(5).
    at_4 = (7 / math.log2(3) + 1 / math.log2(5)) / (7 + 1 / math.log2(3))
    assert measures(con, "graded", 4) == [1.0, 2 / 4, 1 / 2, pytest.approx(at_4, abs=1e-15)]


def test_the_ideal_ranking_is_cut_at_k() -> None:
    con = built(replace(ONE_SPACE, results={(0, "s", "graded"): ["a", "b"]}))
    # The best document alone is an ideal top 1, although another relevant one exists.
    assert measures(con, "graded", 1) == [1 / 2, 1.0, 1.0, 1.0]


def test_a_case_without_relevant_documents_is_undefined_and_counted() -> None:
    con = built(ONE_SPACE)
    assert measures(con, "no relevant", 4) == [None] * 4
    means = row(con, "FROM metric_by_space WHERE k = 4")
    # Defined: graded and no results. Recall (1 + 0) / 2, P (2/4 + 0) / 2, RR (1/2 + 0) / 2.
    assert (means["query_count"], means["defined_count"]) == (3, 2)
    assert means["mean_recall_at_k"] == 0.5
    assert means["mean_precision_at_k"] == 0.25
    assert means["mrr"] == 0.25


def test_a_judged_case_without_results_is_zero() -> None:
    assert measures(built(ONE_SPACE), "no results", 4) == [0.0] * 4


def test_a_space_that_returned_nothing_at_all_still_has_rows_of_zero() -> None:
    con = built(replace(ONE_SPACE, results={}))
    assert row(con, "FROM metric_by_space WHERE k = 4")["mean_recall_at_k"] == 0.0


def test_means_without_any_defined_case_are_null() -> None:
    con = built(replace(ONE_SPACE, cases={"no relevant": Case({"a": 0})}, results={}))
    means = row(con, "FROM metric_by_space WHERE k = 4")
    assert (means["query_count"], means["defined_count"]) == (1, 0)
    assert means["mean_ndcg_at_k"] is None


def test_a_document_that_the_subject_may_not_read_is_not_relevant() -> None:
    items = {**DOCUMENTS, **QUERY, "b": Held(acl=("board", "audit"))}
    case = Case({"a": 1, "b": 3})
    con = built(
        replace(
            ONE_SPACE,
            spaces={"s": items},
            cases={"staff": case, "audit": replace(case, groups=("audit", "staff"))},
            results={(0, "s", "staff"): ["a"], (0, "s", "audit"): ["a"]},
        )
    )
    assert measures(con, "staff", 4) == [1.0, 1 / 4, 1.0, 1.0]
    assert measures(con, "audit", 4)[0] == 1 / 2


def test_subgroups_count_a_case_once_in_each_subgroup_it_names() -> None:
    cases = {**ONE_SPACE.cases, "twice": Case({"c": 1}, subgroups=("graded", "graded"))}
    con = built(replace(ONE_SPACE, cases=cases))
    found = {
        r["subgroup"]: (r["query_count"], r["defined_count"], r["mean_recall_at_k"])
        for r in rows(con, "FROM metric_by_subgroup WHERE k = 4")
    }
    # graded: recall 1 for "graded", 0 for "twice". short: "no relevant" is undefined.
    assert found == {"graded": (2, 2, 0.5), "short": (2, 1, 1.0)}


def test_results_and_judgements_are_read_by_id() -> None:
    con = built(ONE_SPACE)
    assert [
        (r["space_id"], r["index_name"], r["rank"], r["item_id"], r["score"])
        for r in rows(con, "FROM query_results WHERE case_id = 'graded' ORDER BY rank LIMIT 2")
    ] == [("s", "exact", 1, "c", 0.99), ("s", "exact", 2, "a", 0.98)]
    assert row(con, "FROM qrels WHERE case_id = 'no results'") == {
        "case_id": "no results",
        "item_id": "c",
        "grade": 2,
    }


def test_inventory_counts_by_role_and_estimates_bytes_from_dtype() -> None:
    held = {
        "a": Held(norm=1.0),
        "b": Held(norm=4.0),
        "q": Held(role="query", norm=2.0),
    }
    con = built(
        Example(
            spaces={"s32": held, "s64": held, "none": {}},
            cases={},
            results={},
            contract={"s64": {"dtype": "float64", "dimension": 5}},
            not_executed={"none": "no key"},
        )
    )
    first, second, third = rows(con, "FROM space_inventory")
    assert (first["item_count"], first["document_count"], first["query_item_count"]) == (3, 2, 1)
    assert first["estimated_raw_vector_bytes"] == 3 * 4 * 4
    assert second["estimated_raw_vector_bytes"] == 3 * 5 * 8
    assert (first["norm_min"], first["norm_median"], first["norm_max"]) == (1.0, 2.0, 4.0)
    assert (third["item_count"], third["norm_min"], third["status_reason"]) == (0, None, "no key")


def random_base(queries: int, depth: int, documents: int) -> dict[str, pa.Table]:
    """Two spaces with random rankings and graded judgements, `depth` results per query."""
    random = np.random.default_rng(7)

    def table(name: str, columns: dict[str, object]) -> pa.Table:
        schema = BASE[name]
        count = max(len(values) for values in columns.values() if isinstance(values, np.ndarray))
        arrays = []
        for column in schema:
            values = columns.get(column.name, "x")
            if not isinstance(values, np.ndarray):
                values = [values] * count
            arrays.append(pa.array(values, column.type))
        return pa.table(arrays, schema=schema)

    case_no = np.arange(queries)
    item_no = np.arange(documents)
    drawn = np.argsort(random.random((2, queries, documents)), axis=2)[:, :, :depth]
    judged = np.argsort(random.random((queries, documents)), axis=1)[:, :7]
    names = np.array([f"{n:06d}" for n in range(max(queries, documents))])
    both = np.array([0, 1])
    space_items = {
        "space_no": np.repeat(both, documents),
        "item_no": np.tile(item_no, 2),
        "l2_norm": np.ones(2 * documents),
    }
    return {
        **{name: empty_table(name) for name in BASE},
        "spaces": table(
            "spaces",
            {
                "space_no": both,
                "space_id": np.array(["old", "new"]),
                "dimension": 4,
                "max_input_tokens": 4,
                "normalized": True,
                "document_role": "x",
                "status": "evaluated",
            },
        ),
        "items": table("items", {"item_no": item_no, "item_id": names[:documents], "acl": ["x"]}),
        "space_items": table("space_items", {**space_items, "acl": ["x"]}),
        "cases": table(
            "cases",
            {
                "case_no": case_no,
                "case_id": names[:queries],
                "query_item_no": 0,
                "subject_groups": ["x"],
                "subgroups": ["one", "two"],
            },
        ),
        "qrels": table(
            "qrels",
            {
                "case_no": np.repeat(case_no, 7),
                "item_no": judged.ravel(),
                "grade": random.integers(1, 4, 7 * queries),
            },
        ),
        "results": table(
            "results",
            {
                "scope": 0,
                "space_no": np.repeat(both, queries * depth),
                "index_name": "exact",
                "case_no": np.tile(np.repeat(case_no, depth), 2),
                "rank": np.tile(np.arange(1, depth + 1), 2 * queries),
                "item_no": drawn.ravel(),
                "score": 0.5,
                "exact_score": 0.5,
            },
        ),
        "evaluated_k": table("evaluated_k", {"k": np.array([3, 10, 50])}),
        "audited_pairs": table(
            "audited_pairs", {"pair_no": np.array([1]), "old_space_no": 0, "new_space_no": 1}
        ),
        "indexes": table("indexes", {"space_no": both, "index_name": "exact"}),
    }


def test_every_number_is_equal_to_the_last_bit_for_any_thread_count() -> None:
    # Below about 123,000 rows (one row group) DuckDB sums in one thread and nothing could differ.
    base = random_base(queries=60_000, depth=6, documents=20)
    outcomes = []
    for threads in (1, 4):
        con = duckdb.connect(config={"threads": threads})
        build(con, base, MODELS)
        outcomes.append(
            [
                con.sql(f"FROM {table} ORDER BY ALL").to_arrow_table()
                for table in (
                    "metric_by_query",
                    "metric_by_space",
                    "metric_by_subgroup",
                    "migration_by_query",
                    "migration_audit",
                )
            ]
        )
    assert outcomes[0][0].num_rows == 60_000 * 2 * 3
    assert outcomes[0] == outcomes[1]
