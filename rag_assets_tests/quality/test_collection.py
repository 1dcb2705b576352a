from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rag_assets.quality.collection import check_collection
from rag_assets.sources.collection import QRELS_READ
from rag_assets.sources.options import source_options
from rag_assets_tests.quality.examples import bad, only
from rag_assets_tests.sources.folders import DOCUMENTS, HEADER, QUERIES, lines, read

ALL_JUDGED = HEADER + "q1\td1\t2\nq2\t007\t1\nq3\td2\t1\n"
HEALTHY: dict[str, Any] = {"qrels": ALL_JUDGED}


def test_a_healthy_collection_passes(tmp_path: Path) -> None:
    report = check_collection(read(tmp_path, **HEALTHY))
    assert report.passed
    assert report.check_name == "data_checks"
    assert report.numbers["documents"] == 3
    assert report.numbers["queries"] == 3
    assert report.numbers["judgements"] == 3


def document(**fields: object) -> dict[str, str]:
    return {"corpus": lines(*DOCUMENTS, {"_id": "x", "text": "a text", **fields})}


def query(**fields: object) -> dict[str, str]:
    row = {"_id": "q4", "text": "a question", **fields}
    judged = ALL_JUDGED + f"{row['_id']}\td1\t1\n"
    return {"queries": lines(*QUERIES, row), "qrels": judged}


@pytest.mark.parametrize(
    ("files", "table", "column", "sample", "blocks"),
    [
        (document(text=" \n"), "documents", "text_is_blank", ("x",), True),
        (document(_id=" x"), "documents", "id_has_outer_whitespace", (" x",), True),
        (document(_id="x\u00a0"), "documents", "id_has_outer_whitespace", ("x\u00a0",), True),
        (document(_id="x\u0007y"), "documents", "id_has_control_character", ("x\u0007y",), True),
        (document(_id="x y"), "documents", "id_has_inner_whitespace", ("x y",), False),
        (document(_id="x\u2003y"), "documents", "id_has_inner_whitespace", ("x\u2003y",), False),
        (document(_id="e\u0301"), "documents", "id_is_not_nfc", ("e\u0301",), False),
        (document(text="third"), "documents", "text_repeats", ("007", "x"), False),
        (document(text="e\u0301"), "documents", "text_was_not_nfc", ("x",), False),
        (document(text="a\r\nb"), "documents", "text_had_carriage_returns", ("x",), False),
        (document(text="a\u000cb"), "documents", "text_has_control_characters", ("x",), False),
        (query(_id="d1"), "queries", "id_is_a_document_id", ("d1",), False),
        (query(text="what is third?"), "queries", "text_repeats", ("q2", "q4"), False),
        (query(_id="q 4"), "queries", "id_has_inner_whitespace", ("q 4",), False),
        (query(text=""), "queries", "text_is_blank", ("q4",), True),
        ({"qrels": HEADER + "q1\td1\t2\nq2\t007\t1\n"}, "queries", "is_unjudged", ("q3",), False),
        (
            {"qrels": ALL_JUDGED + "q1\td2\t0\n"},
            "judgements",
            "is_zero_or_negative",
            ("query q1: d2",),
            False,
        ),
        (
            {"qrels": ALL_JUDGED + "q1\td2\t-1\n"},
            "judgements",
            "is_zero_or_negative",
            ("query q1: d2",),
            False,
        ),
        (
            {"qrels": ALL_JUDGED + "q1\tgone\t1\n"},
            "orphan_judgements",
            "unknown",
            ("set/qrels/test.tsv 5: query q1, document gone",),
            True,
        ),
        ({"qrels": b"\xef\xbb\xbf" + ALL_JUDGED.encode()}, "files", "has_byte_order_mark",
         ("set/qrels/test.tsv",), False),
        ({"qrels": ALL_JUDGED.replace("2\n", "2\r\n")}, "files", "mixes_line_ends",
         ("set/qrels/test.tsv",), False),
        ({"qrels": ALL_JUDGED + "\n\n"}, "files", "ends_in_blank_lines",
         ("set/qrels/test.tsv",), False),
        ({"qrels": ALL_JUDGED + "q1\td1\t2\n"}, "left_out", "something_left_out",
         ("1 repeated_judgements",), False),
    ],
)  # fmt: skip
def test_one_fault_is_one_finding_with_its_record(
    tmp_path: Path,
    files: dict[str, Any],
    table: str,
    column: str,
    sample: tuple[str, ...],
    blocks: bool,
) -> None:
    report = check_collection(read(tmp_path, **{**HEALTHY, **files}))
    outcome = only(report)
    assert (outcome.table, outcome.column, outcome.sample) == (table, column, sample)
    assert report.blocks is blocks
    assert json.loads(report.to_json())["passed"] is False


def test_two_ids_in_two_unicode_forms_are_both_named(tmp_path: Path) -> None:
    text = lines(*DOCUMENTS, {"_id": "\u00e9", "text": "a"}, {"_id": "e\u0301", "text": "b"})
    found = bad(check_collection(read(tmp_path, **HEALTHY, corpus=text)))
    outcome = found["documents", "id_looks_like_another", "column_values_to_be_in_set"]
    assert outcome.sample == ("\u00e9", "e\u0301")


def test_a_query_with_only_irrelevant_documents_is_named(tmp_path: Path) -> None:
    found = bad(check_collection(read(tmp_path, qrels=ALL_JUDGED.replace("d2\t1", "d2\t0"))))
    outcome = found["queries", "has_only_irrelevant", "column_values_to_be_in_set"]
    assert outcome.sample == ("q3",)


def test_a_judged_document_that_the_subject_may_not_read_is_an_error(tmp_path: Path) -> None:
    options = source_options({"acl": {"field": "metadata.groups"}, "subject_groups": "all"})
    report = check_collection(read(tmp_path, options, **HEALTHY))
    outcome = only(report)
    assert (outcome.column, outcome.sample) == ("unreadable", ("query q3: d2",))
    assert report.blocks


def test_grades_out_of_range_and_judged_queries_are_errors(tmp_path: Path) -> None:
    healthy = read(tmp_path, **HEALTHY)
    rows = [
        {"case_row": 0, "item_row": 0, "grade": 54},
        {"case_row": 1, "item_row": 4, "grade": 1},  # row 4 is the item of q2
        {"case_row": 2, "item_row": 0, "grade": 1},
    ]
    spoilt = replace(healthy, qrels=pa.Table.from_pylist(rows, schema=QRELS_READ))
    found = {
        column: outcome.sample for (_, column, _), outcome in bad(check_collection(spoilt)).items()
    }
    assert found == {"grade": ("query q1: d1",), "is_about_a_query": ("query q2: query:q2",)}


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    options = source_options({"acl": "public", "orphan_judgements": "leave_out"})
    report = check_collection(read(tmp_path, options, qrels=ALL_JUDGED + "q1\tgone\t1\n"))
    assert only(report).sample == ("1 orphan_judgements",)
    assert report.numbers["left_out_orphan_judgements"] == 1


def test_an_empty_collection_fails(tmp_path: Path) -> None:
    report = check_collection(read(tmp_path, corpus="", queries="", qrels=HEADER))
    assert {table for table, _, _ in bad(report)} == {"documents", "queries"}
    assert all(outcome.status == "failed" for outcome in bad(report).values())
