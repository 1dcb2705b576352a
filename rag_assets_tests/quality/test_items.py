from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rag_assets.canonical.corpus import Corpus
from rag_assets.canonical.text import content_sha256
from rag_assets.quality.suites import check_canonical_items
from rag_assets_tests.quality.examples import bad, corpus, only, with_cell, with_row


def spoilt(table: str, row: int, **values: object) -> Callable[[Corpus], Corpus]:
    return lambda healthy: replace(
        healthy, **{table: with_cell(getattr(healthy, table), row, **values)}
    )


def test_a_healthy_corpus_passes_and_reports_its_size() -> None:
    report = check_canonical_items(corpus())
    assert report.passed
    assert not report.blocks
    assert report.check_name == "contract_validation"
    assert report.rows == 9  # 5 items, 2 cases, 2 judgements
    assert report.numbers["items"] == 5
    assert report.numbers["judgements"] == 2
    assert report.numbers["failed_expectations"] == 0
    assert {outcome.table for outcome in report.outcomes} == {"items", "cases", "judgements"}


@pytest.mark.parametrize(
    ("spoil", "column", "sample"),
    [
        # d1 with a trailing space still sorts before d2
        (spoilt("items", 0, item_id="d1 "), "outer_whitespace", ("d1 ",)),
        (spoilt("items", 0, item_id="d1\u3000"), "outer_whitespace", ("d1\u3000",)),
        (spoilt("items", 1, item_no=7), "item_no, position_by_id", ("d2",)),
        (spoilt("items", 1, role=None), "role", ("d2",)),
        (spoilt("items", 1, role="picture"), "role", ("d2",)),
        (spoilt("items", 1, acl=["all", "staff", "all"]), "acl_repeats", ("d2",)),
        (spoilt("items", 1, source_revision=" \t"), "source_revision_length", ("d2",)),
        (spoilt("items", 1, source_revision=None), "source_revision_length", ("d2",)),
        (spoilt("items", 1, text="changed"), "content_sha256, sha256_of_text", ("d2",)),
        (
            spoilt("items", 1, text=" \n", content_sha256=content_sha256(" \n")),
            "text_length",
            ("d2",),
        ),
        (spoilt("items", 3, acl=[]), "acl_count", ("q1",)),
        (spoilt("items", 3, acl=None), "acl_count", ("q1",)),
        (spoilt("cases", 1, case_id="c1"), "case_id", ("c1",)),
        (spoilt("cases", 1, case_id=" c2"), "outer_whitespace", (" c2",)),
        (spoilt("cases", 1, query_item_id="q1"), "query_item_id, item_id_by_number", ("c2",)),
        (spoilt("cases", 1, query_item_no=0, query_item_id="d1"), "query_role", ("c2",)),
        (
            spoilt("cases", 1, subject_groups=["staff", "staff"]),
            "subject_group_repeats",
            ("c2",),
        ),
        (spoilt("qrels", 1, grade=0), "grade", ("case c2: d3",)),
        (spoilt("qrels", 1, grade=4), "grade", ("case c2: d3",)),
        (spoilt("qrels", 1, grade=None), "grade", ("case c2: d3",)),
        (spoilt("qrels", 1, item_no=0), "unreadable", ("case c2: d1",)),
        (spoilt("qrels", 0, item_no=3), "role", ("case c1: q1",)),
        (spoilt("qrels", 0, item_no=99), "item_id", ("case c1: row 0",)),
    ],
)
def test_one_fault_fails_one_expectation_and_names_the_record(
    spoil: Callable[[Corpus], Corpus], column: str, sample: tuple[str, ...]
) -> None:
    report = check_canonical_items(spoil(corpus()))
    outcome = only(report)
    assert (outcome.status, outcome.column, outcome.sample) == ("failed", column, sample)
    assert not report.passed
    assert report.blocks


def test_a_repeated_item_id_names_the_item() -> None:
    # The copy keeps its number 0 but stands at position 1, so the order rule fails with it.
    healthy = corpus()
    report = check_canonical_items(replace(healthy, items=with_row(healthy.items, 0)))
    outcome = bad(report)["items", "item_id", "column_values_to_be_unique"]
    assert outcome.sample == ("d1",)
    assert outcome.failing_count == 2


@pytest.mark.parametrize(
    ("found", "expectation"),
    [
        (None, "column_values_to_not_be_null"),
        ("ab", "column_value_lengths_to_equal"),
        ("A" * 64, "column_values_to_not_match_regex"),
        ("0" * 63 + "\n", "column_values_to_not_match_regex"),
    ],
)
def test_a_malformed_hash_is_told_apart_from_a_wrong_one(
    found: str | None, expectation: str
) -> None:
    failing = bad(check_canonical_items(spoilt("items", 1, content_sha256=found)(corpus())))
    assert failing.pop(("items", "content_sha256", expectation)).sample == ("d2",)
    # ... and no malformed hash is the text's.
    assert set(failing) == {
        ("items", "content_sha256, sha256_of_text", "column_pair_values_to_be_equal")
    }


def test_a_case_without_an_id_fails_and_so_does_its_judgement() -> None:
    failing = bad(check_canonical_items(spoilt("cases", 1, case_id=None)(corpus())))
    assert failing["cases", "case_id", "column_values_to_not_be_null"].sample == ("row 1",)
    assert {table for table, _, _ in failing} == {"cases", "judgements"}


def test_a_case_of_an_unknown_query_item_fails() -> None:
    failing = bad(check_canonical_items(spoilt("cases", 0, query_item_no=99)(corpus())))
    assert failing["cases", "item_id_by_number", "column_values_to_not_be_null"].sample == ("c1",)


def test_a_subject_without_groups_fails_and_its_judgement_is_unreadable() -> None:
    failing = bad(check_canonical_items(spoilt("cases", 0, subject_groups=[])(corpus())))
    assert {column for _, column, _ in failing} == {"subject_group_count", "unreadable"}


def test_a_judgement_of_an_unknown_case_fails_and_leaves_a_case_unjudged() -> None:
    failing = bad(check_canonical_items(spoilt("qrels", 1, case_no=9)(corpus())))
    assert {column for _, column, _ in failing} == {"case_id", "judgement_count"}


def test_a_case_number_out_of_order_fails() -> None:
    failing = bad(check_canonical_items(spoilt("cases", 1, case_no=5)(corpus())))
    assert failing["cases", "case_no, position_in_file", "column_pair_values_to_be_equal"].sample


def test_the_same_judgement_twice_fails() -> None:
    healthy = corpus()
    report = check_canonical_items(replace(healthy, qrels=with_row(healthy.qrels, 0)))
    assert only(report).column == "case_id, item_id"


def test_unjudged_cases_may_be_allowed() -> None:
    unjudged = replace(corpus(), qrels=corpus().qrels.slice(0, 1))
    assert only(check_canonical_items(unjudged)).sample == ("c2",)
    allowed = check_canonical_items(unjudged, judgements_required=False)
    assert allowed.passed
    assert allowed.numbers["unjudged_cases"] == 1


def test_an_empty_corpus_fails_on_its_row_counts() -> None:
    full = corpus()
    empty = replace(full, items=full.items[:0], cases=full.cases[:0], qrels=full.qrels[:0])
    failing = bad(check_canonical_items(empty))
    assert set(failing) == {
        ("items", None, "table_row_count_to_be_between"),
        ("cases", None, "table_row_count_to_be_between"),
    }
