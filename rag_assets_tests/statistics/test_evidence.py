"""What a database gives the statistics: the same means as its tables, and the pairs it holds."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest

from rag_assets.statistics import evidence
from rag_assets.warehouse.build import rebuild
from rag_assets_tests.report.releases import ann_release
from rag_assets_tests.warehouse.examples import (
    DOCUMENTS,
    MODELS,
    QUERY,
    Case,
    Example,
    built,
    rows,
)


def judged(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """With the statistics of its measures, as a release has them."""
    added = {
        "comparisons": evidence.compare_tables(con),
        "metric_intervals": evidence.interval_tables(con),
    }
    rebuild(con, added, MODELS)
    return con


# 24 cases: the old space ranks the one relevant document first, the new one second in 12 of them.
# One more case has no judgement. A subgroup holds 21 cases, 11 of those that fall.
SPACES = {name: {**DOCUMENTS, **QUERY} for name in ("old", "new")}
MANY = Example(
    spaces=SPACES,
    cases={
        **{f"c{n:02}": Case({"d": 1}, subgroups=("most",) if n > 2 else ()) for n in range(24)},
        "none": Case({}, subgroups=("lonely",)),
    },
    results={
        **{(0, "old", f"c{n:02}"): ["d", "a"] for n in range(24)},
        **{(0, "new", f"c{n:02}"): ["a", "d"] if n % 2 else ["d", "a"] for n in range(24)},
        **{(0, space, "none"): ["a"] for space in SPACES},
    },
    ks=(1, 3),
    pairs=[("old", "new")],
)


def test_every_mean_of_the_measures_has_its_row_and_the_same_value() -> None:
    con = judged(built(MANY))
    for table, where in (("metric_by_space", "IS NULL"), ("metric_by_subgroup", "= t.subgroup")):
        apart = rows(
            con,
            f"""
            SELECT t.*, i.* FROM {table} AS t
            CROSS JOIN (VALUES ('mrr', 'reciprocal_rank'), ('mean_ndcg_at_k', 'ndcg_at_k'),
                ('mean_recall_at_k', 'recall_at_k'), ('mean_precision_at_k', 'precision_at_k')
            ) AS named(shown, measure)
            LEFT JOIN metric_intervals AS i ON i.space_id = t.space_id
                AND i.index_name = t.index_name AND i.k = t.k AND i.measure = named.measure
                AND i.subgroup {where}
            WHERE i.query_count IS DISTINCT FROM t.query_count
                OR i.defined_count IS DISTINCT FROM t.defined_count
                OR coalesce(i.mean, -1) - coalesce(CASE shown WHEN 'mrr' THEN t.mrr
                    WHEN 'mean_ndcg_at_k' THEN t.mean_ndcg_at_k
                    WHEN 'mean_recall_at_k' THEN t.mean_recall_at_k
                    ELSE t.mean_precision_at_k END, -1) NOT BETWEEN -1e-12 AND 1e-12
            """,
        )
        assert apart == []
    # 2 spaces, 1 index, 4 measures, 2 cut-offs; all queries and two subgroups.
    assert len(rows(con, "SELECT * FROM metric_intervals")) == 2 * 4 * 2 * 3


def test_an_interval_stands_where_twenty_queries_are() -> None:
    con = judged(built(MANY))
    found = {
        row["subgroup"]: row
        for row in rows(
            con,
            "SELECT * FROM metric_intervals WHERE space_id = 'new' AND k = 3 "
            "AND measure = 'reciprocal_rank'",
        )
    }
    # Half of 24 have the document first, half second: (12 + 12 / 2) / 24.
    assert found[None]["mean"] == 0.75
    # A resample's share of firsts is binomial, 0.5 with a deviation of 0.102; each counts 0.5.
    assert found[None]["interval_low"] == pytest.approx(0.75 - 2.07 * 0.051, abs=0.02)
    assert found["most"]["query_count"] == 21
    assert found["most"]["interval_high"] is not None
    lonely = found["lonely"]
    assert (lonely["query_count"], lonely["defined_count"], lonely["mean"]) == (1, 0, None)


def test_a_subgroup_that_a_case_names_twice_holds_it_once() -> None:
    cases = {
        case_id: replace(case, subgroups=case.subgroups * 2) for case_id, case in MANY.cases.items()
    }
    con = judged(built(replace(MANY, cases=cases)))
    for table in ("metric_intervals", "comparison_statistics"):
        found = rows(con, f"SELECT DISTINCT query_count FROM {table} WHERE subgroup = 'most'")
        assert found == [{"query_count": 21}]


def test_large_query_sets_have_statistics_over_all_queries_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evidence, "MOST_QUERIES_BY_SUBGROUP", 24)  # there are 25
    con = judged(built(MANY))
    for table in ("metric_intervals", "comparison_statistics"):
        assert rows(con, f"SELECT DISTINCT subgroup FROM {table}") == [{"subgroup": None}]


def test_comparisons_are_found_by_their_names() -> None:
    migrations = rows(
        judged(built(MANY)), "SELECT DISTINCT comparison_id FROM comparison_statistics"
    )
    name = evidence.migration_comparison("old", "new", "exact")
    assert migrations == [{"comparison_id": name}]
    indexes = rows(
        judged(ann_release()), "SELECT DISTINCT comparison_id FROM comparison_statistics"
    )
    assert indexes == [{"comparison_id": evidence.index_comparison("s", "ivf")}]


def test_ann_recall_has_a_mean_of_its_own_beside_undefined_relevance() -> None:
    found = {
        (row["index_name"], row["measure"]): row["mean"]
        for row in rows(
            judged(ann_release()), "SELECT * FROM metric_intervals WHERE subgroup IS NULL"
        )
    }
    # The index found a of the exact a, b; nobody judged.
    assert found["ivf", "ann_recall_at_k"] == 0.5
    assert found["ivf", "ndcg_at_k"] is None
    assert ("exact", "ann_recall_at_k") not in found
