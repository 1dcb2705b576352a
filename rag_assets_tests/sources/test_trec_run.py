from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.canonical.corpus import Corpus
from rag_assets.errors import InputError
from rag_assets.results.search import SCORED
from rag_assets.sources.options import source_options
from rag_assets.sources.trec_run import TrecRun, read_trec_run
from rag_assets_tests.sources.folders import corpus

# d1 is open to all and staff, d2 to staff, 007 to all; the subjects are in `all`.
OPTIONS = source_options({"acl": {"field": "metadata.groups"}, "subject_groups": "all"})
# Item numbers: 007 0, d1 1, d2 2. Cases: q1 0, q2 1, q3 2.


def run(folder: Path, content: str, among: Corpus | None = None) -> TrecRun:
    searched = corpus(folder / "set", OPTIONS) if among is None else among
    (folder / "x.run").write_text(content, "utf-8", newline="")
    return read_trec_run(folder / "x.run", searched, "x.run")


def test_documents_are_ranked_by_score_then_id_whatever_the_file_says(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        "# a comment\nq2 Q0 007 1 -1.5 mine\r\n"
        "q1 Q0 d1 1 2.5 mine\nq1\tQ0  007 2 2.50 mine\n"
        "q2 Q0 d1 0 1e1 mine\n",
    )
    assert found.results.schema == SCORED
    assert found.results.to_pylist() == [
        {"case_no": 0, "rank": 1, "item_no": 0, "score": 2.5, "exact_score": None},
        {"case_no": 0, "rank": 2, "item_no": 1, "score": 2.5, "exact_score": None},
        {"case_no": 1, "rank": 1, "item_no": 1, "score": 10.0, "exact_score": None},
        {"case_no": 1, "rank": 2, "item_no": 0, "score": -1.5, "exact_score": None},
    ]
    assert found.tag == "mine"
    assert found.silent_cases == 1  # q3
    assert found.reordered == 2  # the tie of q1


def test_a_document_that_the_subject_may_not_read_is_a_leak(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run(tmp_path, "q1 Q0 d1 1 2 t\nq1 Q0 d2 2 1 t\nq2 Q0 d2 1 1 t\n")
    first, second = caught.value.problems
    assert (first.code, first.place) == ("leaked_document", "line 2")
    assert first.found == 'document "d2", which the subject of "q1" may not read'
    assert second.place == "line 3"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("q9 Q0 d1 1 2 t", "unknown_query"),
        ("q1 Q0 d9 1 2 t", "unknown_document"),
        ("q1 Q0 query:q1 1 2 t", "unknown_document"),  # an item, but no document
        ("q1 Q0 7 1 2 t", "unknown_document"),
        ("q1 Q0 007 1 nan t", "bad_score"),
        ("q1 Q0 007 1 inf t", "bad_score"),
        ("q1 Q0 007 1 1e999 t", "bad_score"),
        ("q1 Q0 007 1 0x1 t", "bad_score"),
        ("q1 Q0 007 first 1 t", "bad_rank"),
        ("q1 Q0 007 1 1", "wrong_columns"),
        ("q1 Q0 my doc 1 1 t", "wrong_columns"),
        ("q1 Q0 d1 2 1 t", "repeated_document"),
        ("#q1 Q0 007 1 1 t", "ambiguous_comment"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, line: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        run(tmp_path, f"q1 Q0 d1 1 3 t\n{line}\n")
    (problem,) = caught.value.problems
    assert (problem.code, problem.place, problem.file) == (code, "line 2", "x.run")


def test_a_file_holds_one_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="several_tags"):
        run(tmp_path, "q1 Q0 d1 1 3 t\nq1 Q0 007 1 3 u\n")
    with pytest.raises(InputError, match="empty_file"):
        run(tmp_path, "# nothing\n")
