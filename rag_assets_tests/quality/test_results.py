from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.canonical.contracts import Metric
from rag_assets.quality.readability import hidden_pairs, readable_counts, set_column
from rag_assets.quality.suites import check_results
from rag_assets_tests.quality.examples import (
    bad,
    corpus,
    only,
    result_rows,
    results,
    space,
    with_cell,
)


def test_healthy_results_pass_in_any_row_order() -> None:
    report = check_results(results(), space(), corpus(), 2)
    assert report.passed
    assert report.numbers["leaked_pairs"] == 0
    assert report.numbers["results"] == 4
    assert check_results(results().take([3, 0, 2, 1]), space(), corpus(), 2).passed


@pytest.mark.parametrize(
    ("row", "cell", "column", "sample"),
    [
        (1, {"rank": 3}, "rank_gap", ("case c1: d2",)),
        (1, {"score": None}, "score", ("case c1: d2",)),
        (1, {"score": float("nan")}, "score", ("case c1: d2",)),
        (1, {"score": float("-inf")}, "score", ("case c1: d2",)),
        (1, {"score": 0.95}, "score_rise", ("case c1: d2",)),
        (1, {"item_no": 0}, "case_no, item_no", ("case c1: d1",)),
        (1, {"item_no": 4}, "role_in_space", ("case c1: q2",)),
    ],
)
def test_one_fault_fails_one_expectation_and_names_case_and_item(
    row: int, cell: dict[str, object], column: str, sample: tuple[str, ...]
) -> None:
    report = check_results(with_cell(results(), row, **cell), space(), corpus(), 2)
    outcome = only(report)
    assert (outcome.status, outcome.column, outcome.sample) == ("failed", column, sample)
    assert report.blocks


def test_repeated_ranks_fail() -> None:
    assert only(check_results(with_cell(results(), 1, rank=1), space(), corpus(), 2)).sample == (
        "case c1: d2",
    )


def test_a_score_may_rise_within_the_ranking_grid() -> None:
    step = 2.0**-29  # cosine: of 1
    close = with_cell(results(), 1, score=0.9 + step / 2)
    assert check_results(close, space(), corpus(), 2).passed
    apart = with_cell(results(), 1, score=0.9 + 2 * step)
    assert only(check_results(apart, space(), corpus(), 2)).column == "score_rise"


@pytest.mark.parametrize(("metric", "largest"), [("dot", 3.0 * 2), ("euclidean", 3.0 + 2)])
def test_the_grid_of_unbounded_metrics_follows_the_norms(metric: Metric, largest: float) -> None:
    # Case c2 asks with q2 = (0, 3); the longest vectors are q2 (3) and d1 (2). The bound may use
    # any item of the space, so the tolerance lies between 2^-29 and 2^-29 * 9.
    plain = space()
    contract = replace(plain.contract, metric=metric)
    embedded = replace(plain, contract=contract)
    rise = 2.0**-29 * largest
    close = with_cell(results(), 3, score=0.8 + rise * 0.9)
    assert check_results(close, embedded, corpus(), 2).passed
    apart = with_cell(results(), 3, score=0.8 + rise * 2)
    assert only(check_results(apart, embedded, corpus(), 2)).column == "score_rise"


def test_more_results_than_k_fail() -> None:
    report = check_results(results(), space(), corpus(), 1)
    outcome = only(report)
    assert (outcome.column, outcome.sample) == ("result_count", ("c1", "c2"))


def test_a_document_hidden_from_the_subject_is_a_leak() -> None:
    # c1 (group all) is shown d3 (staff only): canonical and own list both hide it.
    report = check_results(with_cell(results(), 1, item_no=2), space(), corpus(), 2)
    failing = bad(report)
    assert {column for _, column, _ in failing} == {
        "hidden_by_canonical_acl",
        "hidden_by_space_acl",
    }
    assert {outcome.sample for outcome in failing.values()} == {("case c1: d3",)}
    assert report.numbers["leaked_pairs"] == 1


def test_either_access_list_alone_hides() -> None:
    plain = space()
    narrowed = replace(plain, items=with_cell(plain.items, 1, acl=["staff"]))
    report = check_results(results(), narrowed, corpus(), 2)
    assert only(report).column == "hidden_by_space_acl"
    assert only(report).sample == ("case c1: d2",)
    narrower = replace(corpus(), items=with_cell(corpus().items, 1, acl=["staff"]))
    assert only(check_results(results(), plain, narrower, 2)).column == "hidden_by_canonical_acl"


def test_a_subject_without_groups_is_shown_nothing() -> None:
    groupless = replace(corpus(), cases=with_cell(corpus().cases, 0, subject_groups=[]))
    failing = bad(check_results(results(), space(), groupless, 2))
    assert failing["cases", "results_without_groups", "column_values_to_be_in_set"].sample == (
        "c1",
    )
    assert check_results(results().slice(2), space(), groupless, 2).passed


def test_a_result_of_an_unknown_case_or_item_fails_closed() -> None:
    failing = bad(check_results(with_cell(results(), 0, case_no=9), space(), corpus(), 2))
    assert ("results", "case_known", "column_values_to_be_in_set") in failing
    assert ("results", "hidden_by_canonical_acl", "column_values_to_be_in_set") in failing
    failing = bad(check_results(with_cell(results(), 1, item_no=77), space(), corpus(), 2))
    assert ("results", "role_in_space", "column_values_to_not_be_null") in failing


def test_exact_search_must_find_all_that_it_can() -> None:
    short = results().slice(0, 3)
    report = check_results(short, space(), corpus(), 2)
    assert only(report).sample == ("c2",)
    assert report.numbers["short_cases"] == 1
    assert check_results(short, space(), corpus(), 2, complete=False).passed


def test_no_results_at_all_are_legitimate_only_where_nobody_may_read() -> None:
    none = result_rows()
    report = check_results(none, space(), corpus(), 2, complete=False)
    assert only(report).expectation == "expect_table_row_count_to_be_between"
    outsiders = corpus()
    for row in (0, 1):
        outsiders = replace(
            outsiders, cases=with_cell(outsiders.cases, row, subject_groups=["outside"])
        )
    assert check_results(none, space(), outsiders, 2).passed


def test_a_limited_search_stays_within_its_limits() -> None:
    # Among d1 and d2 only: c1 finds both, c2 (staff) d2.
    limited = result_rows((0, 1, 0, 0.9), (0, 2, 1, 0.5), (1, 1, 1, 0.8))
    among = np.array([0, 1], dtype=np.int32)
    assert check_results(limited, space(), corpus(), 2, among=among).passed
    report = check_results(results(), space(), corpus(), 2, among=among)
    assert only(report).sample == ("case c2: d3",)


GROUPS = st.lists(st.sampled_from(["a", "b", "c", "a,b", "", "1"]), max_size=4)


@settings(max_examples=200, deadline=None)
@given(
    subjects=st.lists(st.none() | GROUPS, min_size=1, max_size=6),
    items=st.lists(st.tuples(st.none() | GROUPS, st.none() | GROUPS), min_size=1, max_size=6),
    data=st.data(),
)
def test_readability_agrees_with_plain_sets(
    subjects: list[list[str] | None],
    items: list[tuple[list[str] | None, list[str] | None]],
    data: st.DataObject,
) -> None:
    strings = pa.list_(pa.string())
    groups = set_column(pa.chunked_array([pa.array(subjects, strings)]))
    canonical = set_column(pa.chunked_array([pa.array([c for c, _ in items], strings)]))
    own = set_column(pa.chunked_array([pa.array([o for _, o in items], strings)]))

    def readable(subject: int, item: int) -> bool:
        wanted = set(subjects[subject] or ())
        return all(wanted & set(entry or ()) for entry in items[item])

    pairs = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(subjects) - 1), st.integers(0, len(items) - 1)),
            max_size=30,
        )
    )
    subject_rows = np.array([subject for subject, _ in pairs], dtype=np.int64)
    item_rows = np.array([item for _, item in pairs], dtype=np.int64)
    hidden = hidden_pairs(groups.at(subject_rows), canonical.at(item_rows)) | hidden_pairs(
        groups.at(subject_rows), own.at(item_rows)
    )
    assert hidden.tolist() == [not readable(*pair) for pair in pairs]
    assert readable_counts(groups, canonical, own).tolist() == [
        sum(readable(subject, item) for item in range(len(items)))
        for subject in range(len(subjects))
    ]


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_leaked_pairs_agree_with_brute_force(data: st.DataObject) -> None:
    group_lists = st.lists(st.sampled_from(["all", "staff", "board"]), max_size=2, unique=True)
    changed, embedded = corpus(), space()
    for row in range(3):
        changed = replace(changed, items=with_cell(changed.items, row, acl=data.draw(group_lists)))
        embedded = replace(
            embedded, items=with_cell(embedded.items, row, acl=data.draw(group_lists))
        )
    for row in range(2):
        changed = replace(
            changed, cases=with_cell(changed.cases, row, subject_groups=data.draw(group_lists))
        )
    found = [(0, rank, rank - 1, 1.0) for rank in range(1, 4)]
    found += [(1, rank, rank - 1, 1.0) for rank in range(1, 4)]
    leaked = [
        (case_no, item_no)
        for case_no, _, item_no, _ in found
        if not all(
            set(changed.cases["subject_groups"][case_no].as_py()) & set(acls[item_no].as_py())
            for acls in (changed.items["acl"], embedded.items["acl"])
        )
    ]
    report = check_results(result_rows(*found), embedded, changed, 3)
    assert report.numbers["leaked_pairs"] == len(leaked)
    hidden = {
        label
        for (_, column, _), outcome in bad(report).items()
        if (column or "").startswith("hidden")
        for label in outcome.sample
    }
    assert hidden == {f"case c{case_no + 1}: d{item_no + 1}" for case_no, item_no in leaked}
