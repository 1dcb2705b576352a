from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from rag_assets.canonical.text import content_sha256
from rag_assets.errors import InputError, UsageError
from rag_assets.sources.beir import read_beir, read_trec
from rag_assets.sources.beir_export import EXPORT_SETTINGS, write_beir
from rag_assets.sources.numbering import corpus_of
from rag_assets.sources.options import source_options
from rag_assets_tests.sources.folders import (
    DOCUMENTS,
    FILES,
    HEADER,
    JUDGEMENTS,
    PUBLIC,
    QUERIES,
    SPACE,
    corpus,
    judged,
    lines,
    problems,
    read,
    write,
)


def test_a_folder_becomes_numbered_items_cases_and_judgements(tmp_path: Path) -> None:
    found = corpus(tmp_path)
    assert found.items.drop_columns(["content_sha256", "acl", "source_revision"]).to_pylist() == [
        {"item_no": 0, "item_id": "007", "role": "document", "text": "third"},
        {"item_no": 1, "item_id": "d1", "role": "document", "text": "One first"},
        {"item_no": 2, "item_id": "d2", "role": "document", "text": "second"},
        {"item_no": 3, "item_id": "query:q1", "role": "query", "text": "what is first?"},
        {"item_no": 4, "item_id": "query:q2", "role": "query", "text": "what is third?"},
        {"item_no": 5, "item_id": "query:q3", "role": "query", "text": "what is missing?"},
    ]
    assert found.items["content_sha256"][1].as_py() == content_sha256("One first")
    assert found.items["acl"].to_pylist() == [["public"]] * 6
    assert set(found.items["source_revision"].to_pylist()) == {"unstated"}
    assert found.cases.select(["case_no", "case_id", "query_item_no", "split"]).to_pylist() == [
        {"case_no": 0, "case_id": "q1", "query_item_no": 3, "split": "test"},
        {"case_no": 1, "case_id": "q2", "query_item_no": 4, "split": "test"},
        {"case_no": 2, "case_id": "q3", "query_item_no": 5, "split": None},
    ]
    assert found.qrels.to_pylist() == [
        {"case_no": 0, "item_no": 1, "grade": 2},
        {"case_no": 0, "item_no": 2, "grade": 0},
        {"case_no": 1, "item_no": 0, "grade": 1},
    ]


def test_each_space_holds_documents_first_then_queries_each_by_number(tmp_path: Path) -> None:
    # "zz" sorts after "query:q1", so the order by number alone would mix the roles
    text = lines(*DOCUMENTS, {"_id": "zz", "text": "last"})
    found = corpus(tmp_path, corpus=text)
    held = found.items_of("s")
    assert held["item_id"].to_pylist() == [
        "007", "d1", "d2", "zz", "query:q1", "query:q2", "query:q3",
    ]  # fmt: skip
    assert held["item_no"].to_pylist() == [0, 1, 2, 6, 3, 4, 5]


def test_rights_revisions_and_subgroups_come_from_named_fields(tmp_path: Path) -> None:
    options = source_options(
        {
            "acl": {"field": "metadata.groups"},
            "subject_groups": ["staff"],
            "source_revision": {"field": "metadata.rev", "constant": "r1"},
            "subgroups": ["metadata.kind", "metadata.year"],
        }
    )
    found = read(tmp_path, options)
    assert found.items["acl"].to_pylist()[:3] == [["all", "staff"], ["staff"], ["all"]]
    assert found.items["source_revision"].to_pylist()[:3] == ["r1", "r1", "r7"]
    assert found.cases["subject_groups"].to_pylist() == [["staff"]] * 3
    assert found.cases["subgroups"].to_pylist() == [["fact", "2011"], [], []]


def test_nothing_is_public_by_accident(tmp_path: Path) -> None:
    write(tmp_path, {})
    with pytest.raises(UsageError, match="who may read"):
        read_beir(tmp_path, source_options({}))
    with pytest.raises(UsageError, match="subject_groups"):
        read_beir(tmp_path, source_options({"acl": {"field": "metadata.groups"}}))


def test_a_document_without_groups_in_its_field_is_refused(tmp_path: Path) -> None:
    settings = {"acl": {"field": "metadata.groups"}, "subject_groups": "all"}
    text = lines(*DOCUMENTS[:2], {"_id": "007", "text": "third"})
    (problem,) = problems(tmp_path, source_options(settings), corpus=text)
    assert (problem.code, problem.file) == ("no_groups", "set/corpus.jsonl")
    assert problem.place == 'line 3 ("007"), metadata.groups'


def test_a_query_may_share_its_id_with_a_document(tmp_path: Path) -> None:
    found = corpus(
        tmp_path, queries=lines({"_id": "d1", "text": "who?"}), qrels=HEADER + "d1\td1\t1\n"
    )
    assert found.items["item_id"].to_pylist() == ["007", "d1", "d2", "query:d1"]
    assert found.qrels.to_pylist() == [{"case_no": 0, "item_no": 1, "grade": 1}]


def test_a_document_with_the_item_id_of_a_query_is_refused(tmp_path: Path) -> None:
    text = lines(*DOCUMENTS, {"_id": "query:q1", "text": "a trap"})
    (problem,) = problems(tmp_path, corpus=text)
    assert (problem.code, problem.place) == ("item_id_taken", "line 1")
    assert read(tmp_path, source_options({"acl": "public", "query_prefix": "?"}), corpus=text)


@pytest.mark.parametrize(
    ("line", "code", "place"),
    [
        ('{"_id": 7, "text": "a"}', "id_not_text", "line 4, _id"),
        ('{"_id": "d1", "text": "a"}', "duplicate_document", "line 4"),
        ('{"_id": " ", "text": "a"}', "blank_identifier", 'line 4 (" "), _id'),
        ('{"text": "a"}', "missing_field", "line 4, _id"),
        ('{"_id": "x", "_id": "y", "text": "a"}', "duplicate_key", "line 4, _id"),
        ('{"_id": "x", "text": 3}', "wrong_type", 'line 4 ("x"), text'),
        ('{"_id": "x", "text": "\\ud800"}', "lone_surrogate", 'line 4 ("x"), text'),
        ('{"_id": "x", "text": "a"', "syntax_error", "line 4"),
        ('["x", "a"]', "wrong_type", "line 4"),
        ("[" * 100_000, "too_deep", "line 4"),
    ],
)
def test_a_faulty_document_is_named_by_its_line(
    tmp_path: Path, line: str, code: str, place: str
) -> None:
    found = problems(tmp_path, corpus=FILES["corpus.jsonl"] + line + "\n")
    assert (found[0].code, found[0].place, found[0].file) == (code, place, "set/corpus.jsonl")


@pytest.mark.parametrize(
    ("rows", "code", "line"),
    [
        ("q1\td1\t1\n", "wrong_header", 1),  # no header: its first judgement would be lost
        ("query-id\tcorpus-id\tscore\textra\n", "wrong_header", 1),
        (HEADER + "q1\td1\t1.0\n", "bad_grade", 2),
        (HEADER + "q1\td1\tyes\n", "bad_grade", 2),
        (HEADER + "q1\td1\t54\n", "bad_grade", 2),  # 2^54 - 1 is not exact in float64
        (HEADER + "q1\td1\t-129\n", "bad_grade", 2),
        (HEADER + "q1\td1\t99999999999999999999\n", "bad_grade", 2),
        (HEADER + "q1\td1\t\n", "bad_grade", 2),
        (HEADER + "q1\t\td1\t1\n", "wrong_columns", 2),
        (HEADER + "q1 d1 1\n", "wrong_columns", 2),
        (HEADER + "q1\td1\n", "wrong_columns", 2),
        (HEADER + " \td1\t1\n", "blank_identifier", 2),
        (HEADER + "q1\td1\t1\n\nq2\td1\t1\n", "blank_line", 3),
        (HEADER + "q1\td1\t1\nq2\td1\t1\nq1\td1\t0\n", "conflicting_judgements", 4),
    ],
)
def test_a_faulty_judgement_is_named_by_its_line(
    tmp_path: Path, rows: str, code: str, line: int
) -> None:
    (problem,) = problems(tmp_path, qrels=rows)
    assert (problem.code, problem.place) == (code, f"line {line}")
    assert problem.file == "set/qrels/test.tsv"


def test_bytes_that_are_not_utf8_are_named_by_their_line(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, qrels=JUDGEMENTS.encode() + b"q\xff\td1\t1\n")
    assert (problem.code, problem.place) == ("not_utf8", "line 5")


def test_all_faults_are_shown_up_to_a_limit(tmp_path: Path) -> None:
    rows = HEADER + "q1\td1\tx\n" * 300
    assert len(problems(tmp_path, qrels=rows)) == 100
    options = source_options({"acl": "public", "max_problems": 3})
    with pytest.raises(InputError) as caught:
        read(tmp_path, options, qrels=rows)
    assert [problem.place for problem in caught.value.problems] == ["line 2", "line 3", "line 4"]
    assert caught.value.truncated


def test_line_numbers_hold_across_blocks(tmp_path: Path) -> None:
    # 200,000 lines of 106 or 107 bytes pass the 16 MB of a block
    count = 200_000
    one, two = f"q1\t{'d' * 100}\t1\n", f"q2\t{'d' * 101}\t1\n"
    rows = HEADER + one * (count // 2) + two * (count // 2) + "q1\td1\tx\n"
    (problem,) = problems(tmp_path, qrels=rows)
    assert problem.place == f"line {count + 2}"


def test_ids_keep_spaces_and_leading_zeros(tmp_path: Path) -> None:
    text = lines({"_id": "my doc", "text": "a"}, {"_id": "01", "text": "b"})
    found = read(tmp_path, corpus=text, qrels=HEADER + "q1\tmy doc\t1\nq1\t01\t1\n")
    assert judged(found) == {("q1", "my doc"): 1, ("q1", "01"): 1}


def test_an_agreeing_repeated_judgement_is_merged_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path, qrels=JUDGEMENTS + "q1\td1\t2\n")
    assert judged(found) == {("q1", "d1"): 2, ("q1", "d2"): 0, ("q2", "007"): 1}
    assert found.left_out["repeated_judgements"] == 1


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks_change_nothing_but_the_notes(
    tmp_path: Path, end: str, mark: bytes
) -> None:
    spelled = {name: mark + text.replace("\n", end).encode() for name, text in FILES.items()}
    found = read_beir(write(tmp_path, spelled), PUBLIC)
    plain = read(tmp_path / "plain")
    assert found.items.equals(plain.items)
    assert found.cases.equals(plain.cases)
    assert found.qrels.equals(plain.qrels)
    facts = found.files.to_pylist()[2]
    assert facts["byte_order_mark"] == bool(mark)
    assert (facts["lf_ends"], facts["crlf_ends"]) == ((4, 0) if end == "\n" else (0, 4))


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_files_read_as_plain_ones(tmp_path: Path, ending: str) -> None:
    def packed(text: str) -> bytes:
        if ending == ".gz":  # two members, as concatenated files have
            half = len(text) // 2
            return gzip.compress(text[:half].encode()) + gzip.compress(text[half:].encode())
        return bytes(pa.compress(text.encode(), "zstd", asbytes=True))

    files: dict[str, str | bytes | None] = dict.fromkeys(FILES)
    files |= {name + ending: packed(text) for name, text in FILES.items()}
    found = read_beir(write(tmp_path, files), PUBLIC)
    assert judged(found) == judged(read(tmp_path / "plain"))
    assert found.cases["split"].to_pylist() == ["test", "test", None]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_truncated_compressed_file_is_refused(tmp_path: Path, ending: str) -> None:
    text = FILES["corpus.jsonl"].encode()
    packed = gzip.compress(text) if ending == ".gz" else pa.compress(text, "zstd", asbytes=True)
    write(tmp_path, {"corpus.jsonl": None, f"corpus.jsonl{ending}": bytes(packed[:-9])})
    with pytest.raises(InputError, match="unreadable_file"):
        read_beir(tmp_path, PUBLIC)


def test_a_plain_file_named_as_compressed_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"corpus.jsonl": None, "corpus.jsonl.gz": FILES["corpus.jsonl"]})
    with pytest.raises(InputError, match="not_compressed"):
        read_beir(tmp_path, PUBLIC)


def test_missing_and_doubled_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no corpus\.jsonl"):
        read_beir(write(tmp_path / "a", {"corpus.jsonl": None}), PUBLIC)
    with pytest.raises(InputError, match="ambiguous_file"):
        read_beir(write(tmp_path / "b", {"corpus.jsonl.gz": "x"}), PUBLIC)
    with pytest.raises(InputError, match="file_not_found"):
        read_beir(write(tmp_path / "c", {"qrels/test.tsv": None}), PUBLIC)
    with pytest.raises(InputError, match="no such folder"):
        read_beir(tmp_path / "nowhere", PUBLIC)


def test_only_queries_of_the_chosen_split_and_unjudged_ones_are_kept(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"qrels/train.tsv": HEADER + "q2\td1\t1\n", "qrels/test.tsv": HEADER + "q1\td1\t2\n"},
    )
    chosen = read_beir(tmp_path, source_options({"acl": "public", "split": "test"}))
    assert chosen.cases.select(["case_id", "split"]).to_pylist() == [
        {"case_id": "q1", "split": "test"},
        {"case_id": "q3", "split": None},
    ]
    assert judged(chosen) == {("q1", "d1"): 2}
    assert chosen.left_out["queries_of_other_splits"] == 1
    strict = {"acl": "public", "split": "test", "unjudged_queries": "leave_out"}
    only = read_beir(tmp_path, source_options(strict))
    assert only.cases["case_id"].to_pylist() == ["q1"]
    assert only.left_out["unjudged_queries"] == 1
    both = read_beir(tmp_path, PUBLIC)
    assert both.cases["split"].to_pylist() == ["test", "train", None]
    with pytest.raises(InputError, match="the splits are test, train"):
        read_beir(tmp_path, source_options({"acl": "public", "split": "dev"}))


def test_a_field_names_the_split_of_an_unjudged_query(tmp_path: Path) -> None:
    queries = lines(*QUERIES[:2], {"_id": "q3", "text": "x", "metadata": {"split": "dev"}})
    settings = {"acl": "public", "split_field": "metadata.split"}
    assert read(tmp_path, source_options(settings), queries=queries).cases["split"].to_pylist() == [
        "test",
        "test",
        "dev",
    ]
    chosen = read(tmp_path, source_options({**settings, "split": "test"}), queries=queries)
    assert chosen.cases["case_id"].to_pylist() == ["q1", "q2"]
    assert chosen.left_out["queries_of_other_splits"] == 1


def test_a_query_judged_in_two_splits_is_refused_unless_one_is_chosen(tmp_path: Path) -> None:
    write(tmp_path, {"qrels/train.tsv": HEADER + "q1\td2\t1\n"})
    with pytest.raises(InputError, match="query_in_two_splits"):
        read_beir(tmp_path, PUBLIC)
    chosen = read_beir(tmp_path, source_options({"acl": "public", "split": "train"}))
    assert judged(chosen) == {("q1", "d2"): 1}


def test_orphan_judgements_are_kept_for_the_checks_and_refused_by_a_corpus(tmp_path: Path) -> None:
    rows = JUDGEMENTS + "q1\tgone\t1\nnobody\td1\t1\nnobody\tgone\t1\n"
    found = read(tmp_path, qrels=rows)
    assert [tuple(row.values())[1:] for row in found.orphans.to_pylist()] == [
        (5, "q1", "gone", "document"),
        (6, "nobody", "d1", "query"),
        (7, "nobody", "gone", "both"),
    ]
    with pytest.raises(InputError) as caught:
        corpus_of(found, [SPACE])
    assert [problem.code for problem in caught.value.problems] == ["orphan_judgement"] * 3
    leave = source_options({"acl": "public", "orphan_judgements": "leave_out"})
    without = read(tmp_path, leave, qrels=rows)
    assert without.left_out["orphan_judgements"] == 3
    assert len(corpus_of(without, [SPACE]).qrels) == 3


def test_blank_documents_are_refused_by_a_corpus_or_left_out(tmp_path: Path) -> None:
    text = lines(*DOCUMENTS, {"_id": "void", "title": " ", "text": "\t"})
    with pytest.raises(InputError, match='a blank text of "void"'):
        corpus(tmp_path, corpus=text)
    leave = source_options({"acl": "public", "blank_documents": "leave_out"})
    found = read(tmp_path, leave, corpus=text)
    assert found.left_out["blank_documents"] == 1
    assert len(corpus_of(found, [SPACE]).items) == 6


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"title": "A", "text": "b"}, "A b"),
        ({"title": "", "text": "b"}, "b"),
        ({"title": None, "text": "b"}, "b"),
        ({"title": "A", "text": ""}, "A"),
        ({"text": "b\r\nc"}, "b\nc"),
        ({"title": "e\u0301", "text": "b"}, "\u00e9 b"),
    ],
)
def test_title_and_text_are_joined_by_one_space(
    tmp_path: Path, record: dict[str, str], text: str
) -> None:
    found = read(tmp_path, corpus=lines({"_id": "d1", **record}))
    assert found.items["text"][0].as_py() == text


def test_roles_of_a_contract_must_be_those_of_the_items(tmp_path: Path) -> None:
    from dataclasses import replace

    found = read(tmp_path)
    with pytest.raises(UsageError, match="document_role is 'passage'"):
        corpus_of(found, [replace(SPACE, document_role="passage")])
    with pytest.raises(UsageError, match="each named once"):
        corpus_of(found, [SPACE, SPACE])


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    found = read(tmp_path, corpus="", queries="", qrels=HEADER)
    with pytest.raises(InputError, match="no document"):
        corpus_of(found, [SPACE])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"acls": "public"}, "unknown setting acls"),
        ({"acl": []}, "must name one or more"),
        ({"acl": {"fields": "x"}}, "its keys are field and constant"),
        ({"acl": ["a", "a"]}, "each once"),
        ({"acl": 3}, "must be text"),
        ({"split": "a", "splits": ["b"]}, "give one of them"),
        ({"unjudged_queries": "drop"}, "keep or leave_out"),
        ({"max_problems": True}, "positive integer"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        source_options(settings)


def test_an_export_reads_back_as_the_same_collection(tmp_path: Path) -> None:
    options = source_options(
        {
            "acl": {"field": "metadata.groups"},
            "subject_groups": ["all", "staff"],
            "source_revision": {"field": "metadata.rev", "constant": "r1"},
            "subgroups": ["metadata.kind"],
        }
    )
    first = read(tmp_path / "from", options)
    (tmp_path / "to").mkdir()
    write_beir(first, tmp_path / "to")
    again = read_beir(tmp_path / "to", source_options(EXPORT_SETTINGS))
    assert again.items.equals(first.items)
    assert again.cases.equals(first.cases)
    assert again.qrels.equals(first.qrels)


class TestTrecJudgements:
    """The same folder with four-column judgements."""

    def read(self, folder: Path, rows: str) -> dict[tuple[str, str], int]:
        files = {"qrels/test.tsv": None, "qrels/test.qrels": rows}
        return judged(read_trec(write(folder, files), PUBLIC, "set"))

    def test_white_space_line_ends_and_comments(self, tmp_path: Path) -> None:
        rows = "# made by x\nq1 0 d1 2\r\nq1\t0  d2 \t0\r\n q2 0 007 1\n"
        assert self.read(tmp_path, rows) == {("q1", "d1"): 2, ("q1", "d2"): 0, ("q2", "007"): 1}

    @pytest.mark.parametrize(
        ("rows", "code", "line"),
        [
            ("q1 0 my doc 1\n", "wrong_columns", 1),
            ("q1 0 d1 1.0\n", "bad_grade", 1),
            ("q1 0 d1 1\nq1 0 d1 0\n", "conflicting_judgements", 2),
            ("q1 0 d1\n", "wrong_columns", 1),
            ("q1 0 d1 1\n#q2 0 d1 1\n", "ambiguous_comment", 2),
            ("query-id\tcorpus-id\tscore\nq1\td1\t1\n", "wrong_columns", 1),
        ],
    )
    def test_faults(self, tmp_path: Path, rows: str, code: str, line: int) -> None:
        with pytest.raises(InputError) as caught:
            self.read(tmp_path, rows)
        assert caught.value.problems[0].code == code
        assert caught.value.problems[0].place == f"line {line}"
