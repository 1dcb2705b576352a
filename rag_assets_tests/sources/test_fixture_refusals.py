"""Everything a fixture may not hold is refused: a code, a place, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_assets.errors import InputError, UsageError
from rag_assets.sources.fixture import load_fixture, parse_fixture
from rag_assets_tests.sources.tiny import (
    NFC,
    NFD,
    VALID,
    Mutation,
    contract_of,
    drop,
    item_of,
    mutated,
    problems,
    problems_of,
    put,
)

ITEM0 = '$.items[0]{} (item "q1" in space "a")'
D2A = '$.items[1]{} (item "d2" in space "a")'
C1 = '$.queries[0]{} (case "c1")'
A = '$.contracts[0]{} (space "a")'

REFUSALS: list[tuple[Mutation, str, str]] = [
    # Fields, at every level.
    (drop("queries"), "missing_field", "$"),
    (put("notes", 1), "unknown_field", "$.notes"),
    (drop("contracts", 0, "dtype"), "missing_field", A.format("")),
    (put("contracts", 0, "Dtype2", 1), "unknown_field", A.format(".Dtype2")),
    (drop("items", 0, "acl"), "missing_field", ITEM0.format("")),
    (put("items", 0, "a b", 1), "unknown_field", ITEM0.format('["a b"]')),
    (drop("queries", 0, "subgroups"), "missing_field", C1.format("")),
    (put("queries", 0, "split", "test"), "unknown_field", C1.format(".split")),
    # Types.
    (put("contracts", {}), "wrong_type", "$.contracts"),
    (put("items", "x"), "wrong_type", "$.items"),
    (put("queries", None), "wrong_type", "$.queries"),
    (put("contracts", 0, []), "wrong_type", "$.contracts[0]"),
    (put("items", 6, 7), "wrong_type", "$.items[6]"),
    (put("queries", 1, "c2"), "wrong_type", "$.queries[1]"),
    (put("contracts", 0, "dimension", True), "wrong_type", A.format(".dimension")),
    (put("contracts", 0, "dimension", 2.0), "wrong_type", A.format(".dimension")),
    (put("contracts", 0, "dimension", "2"), "wrong_type", A.format(".dimension")),
    (put("contracts", 0, "normalized", 0), "wrong_type", A.format(".normalized")),
    (put("contracts", 0, "normalized", "false"), "wrong_type", A.format(".normalized")),
    (put("contracts", 0, "metric", 1), "wrong_type", A.format(".metric")),
    (put("contracts", 0, "model", None), "wrong_type", A.format(".model")),
    (put("items", 0, "text", 5), "wrong_type", ITEM0.format(".text")),
    (put("items", 0, "vector", "[1, 0]"), "wrong_type", ITEM0.format(".vector")),
    (put("items", 0, "vector", 1, True), "wrong_type", ITEM0.format(".vector[1]")),
    (put("items", 0, "vector", 1, "0"), "wrong_type", ITEM0.format(".vector[1]")),
    (put("items", 0, "vector", 0, None), "wrong_type", ITEM0.format(".vector[0]")),
    (put("items", 0, "acl", "staff"), "wrong_type", ITEM0.format(".acl")),
    (put("items", 0, "acl", 0, 1), "wrong_type", ITEM0.format(".acl[0]")),
    (put("queries", 0, "relevance", ["d1"]), "wrong_type", C1.format(".relevance")),
    (put("queries", 0, "subgroups", 0, False), "wrong_type", C1.format(".subgroups[0]")),
    # Contracts.
    (put("contracts", []), "no_contracts", "$.contracts"),
    (put("contracts", 0, "dimension", 0), "dimension_out_of_range", A.format(".dimension")),
    (put("contracts", 0, "dimension", 100_001), "dimension_out_of_range", A.format(".dimension")),
    (put("contracts", 0, "metric", "Cosine"), "unknown_metric", A.format(".metric")),
    (put("contracts", 0, "dtype", "float16"), "unknown_dtype", A.format(".dtype")),
    (put("contracts", 0, "query_role", "document"), "same_roles", A.format(".document_role")),
    (
        put("contracts", 2, contract_of("a")),
        "duplicate_space",
        '$.contracts[2].space_id (space "a")',
    ),
    # Items.
    (
        put("items", 7, item_of("d2", "a", [1, 1])),
        "duplicate_item",
        '$.items[7].item_id (item "d2" in space "a")',
    ),
    (
        put("items", 6, "space_id", "c"),
        "unknown_space",
        '$.items[6].space_id (item "d0" in space "c")',
    ),
    (put("items", 0, "role", "ask"), "unknown_role", ITEM0.format(".role")),  # b's role, not a's
    (put("items", 0, "text", ""), "blank_text", ITEM0.format(".text")),
    (put("items", 0, "text", " \r\n\u3000\u200b"), "blank_text", ITEM0.format(".text")),
    (put("items", 0, "text", "bell\x07"), "control_character", ITEM0.format(".text")),
    (put("items", 0, "text", "nel\x85"), "control_character", ITEM0.format(".text")),
    (put("items", 0, "text", "half \ud800"), "lone_surrogate", ITEM0.format(".text")),
    (
        put("items", 0, "source_revision", " "),
        "blank_source_revision",
        ITEM0.format(".source_revision"),
    ),
    (put("items", 0, "acl", []), "empty_groups", ITEM0.format(".acl")),
    (put("items", 0, "acl", 1, "staff"), "duplicate_group", ITEM0.format(".acl[1]")),
    # Vectors.
    (put("items", 0, "vector", [1]), "wrong_dimension", ITEM0.format(".vector")),
    (put("items", 0, "vector", []), "wrong_dimension", ITEM0.format(".vector")),
    (put("items", 0, "vector", [1, 2, 3]), "wrong_dimension", ITEM0.format(".vector")),
    (put("items", 0, "vector", [0, -0.0]), "zero_vector", ITEM0.format(".vector")),
    (put("items", 0, "vector", [1e-60, 0]), "zero_vector", ITEM0.format(".vector")),
    (put("items", 0, "vector", [1, 1e39]), "number_out_of_range", ITEM0.format(".vector[1]")),
    (put("items", 0, "vector", [1, -(10**39)]), "number_out_of_range", ITEM0.format(".vector[1]")),
    (put("items", 0, "vector", [1, 10**400]), "number_out_of_range", ITEM0.format(".vector[1]")),
    (
        put("items", 4, "vector", [0, 1.0000011]),
        "not_normalized",
        '$.items[4].vector (item "d2" in space "b")',
    ),
    (
        put("items", 4, "vector", [1e200, 1e200]),  # its squares are beyond float64
        "not_normalized",
        '$.items[4].vector (item "d2" in space "b")',
    ),
    # Query cases.
    (put("queries", []), "no_queries", "$.queries"),
    (put("queries", 1, "case_id", "c1"), "duplicate_case", '$.queries[1].case_id (case "c1")'),
    (put("queries", 0, "subject_groups", []), "empty_groups", C1.format(".subject_groups")),
    (
        put("queries", 0, "subject_groups", 1, "staff"),
        "duplicate_group",
        C1.format(".subject_groups[1]"),
    ),
    (
        put("queries", 0, "subgroups", 1, "short"),
        "duplicate_subgroup",
        C1.format(".subgroups[1]"),
    ),
    (put("queries", 0, "relevance", {}), "empty_relevance", C1.format(".relevance")),
    *(
        (put("queries", 0, "relevance", "d1", grade), "bad_grade", C1.format(".relevance.d1"))
        for grade in (0, 4, -1, True, 1.0, "1", None)
    ),
    (
        put("queries", 0, "relevance", "d1", 10**400),
        "number_out_of_range",
        C1.format(".relevance.d1"),
    ),
    # References.
    (
        put("queries", 0, "query_item_id", "q9"),
        "query_item_missing",
        C1.format(".query_item_id"),
    ),
    (put("queries", 0, "query_item_id", "d1"), "query_item_role", C1.format(".query_item_id")),
    (put("queries", 0, "relevance", "d9", 1), "gold_missing", C1.format(".relevance.d9")),
    (put("queries", 0, "relevance", "d0", 1), "gold_missing", C1.format(".relevance.d0")),  # not a
    (put("queries", 0, "relevance", "q1", 1), "gold_not_document", C1.format(".relevance.q1")),
    # d1 is open to guests in space a, but not in b: in b it could never be found.
    (
        put("queries", 0, "subject_groups", ["guests"]),
        "gold_unreadable",
        C1.format(".relevance.d1"),
    ),
    (put("items", 4, "acl", ["board"]), "gold_unreadable", '$.queries[1].relevance.d2 (case "c2")'),
    (put("contracts", 2, contract_of("c")), "space_without_role", '$.contracts[2] (space "c")'),
]
# Every identifier obeys the same rules, wherever it stands.
TOKENS: list[tuple[tuple[Any, ...], str]] = [
    *((("contracts", 0, name), A.format(f".{name}")) for name in ("provider", "model", "revision")),
    *((("contracts", 0, f"{name}_role"), A.format(f".{name}_role")) for name in ("query",)),
    (("contracts", 0, "document_role"), A.format(".document_role")),
    (("contracts", 0, "space_id"), "$.contracts[0].space_id"),
    (("items", 0, "item_id"), "$.items[0].item_id"),
    (("items", 0, "space_id"), "$.items[0].space_id"),
    (("items", 0, "role"), ITEM0.format(".role")),
    (("items", 0, "acl", 0), ITEM0.format(".acl[0]")),
    (("items", 0, "source_revision"), ITEM0.format(".source_revision")),
    (("queries", 0, "case_id"), "$.queries[0].case_id"),
    (("queries", 0, "query_item_id"), C1.format(".query_item_id")),
    (("queries", 0, "subject_groups", 0), C1.format(".subject_groups[0]")),
    (("queries", 0, "subgroups", 1), C1.format(".subgroups[1]")),
]
for _path, _place in TOKENS:
    REFUSALS += [
        (put(*_path, " x"), "outer_whitespace", _place),
        (put(*_path, "x\u00a0"), "outer_whitespace", _place),
        (put(*_path, "x\x00y"), "control_character", _place),
        (put(*_path, "x\ny"), "control_character", _place),
        (put(*_path, "x\u2028y"), "control_character", _place),
        (put(*_path, "x\udfff"), "lone_surrogate", _place),
    ]
    if _path[-1] != "source_revision":
        REFUSALS += [
            (put(*_path, ""), "blank_identifier", _place),
            (put(*_path, "\u200b \t"), "blank_identifier", _place),
        ]


@pytest.mark.parametrize(
    ("mutate", "code", "place"),
    REFUSALS,
    ids=[f"{number}-{code}" for number, (_, code, _) in enumerate(REFUSALS)],
)
def test_one_fault_is_one_problem_at_its_place(mutate: Mutation, code: str, place: str) -> None:
    found = problems(mutated(mutate))
    assert {problem.code for problem in found} == {code}
    assert found[0].place.startswith(place)
    # Only a role may be missing twice: a space without items lacks both.
    twice = [("space_without_role", 2), ("gold_unreadable", 2)]
    assert len(found) == 1 or (code, len(found)) in twice, found


RAW_REFUSALS = [
    ('"dimension": 2', '"dimension": 2, "dimension": 2', "duplicate_key", A.format(".dimension")),
    ('"role": "query"', '"role": 1, "role": "query"', "duplicate_key", ITEM0.format(".role")),
    ('{"d1": 3', '{"d1": 3, "d1": 3', "duplicate_key", C1.format(".relevance.d1")),
    ('"queries": [', '"queries": 1, "queries": [', "duplicate_key", "$.queries"),
    ("[3, 4.5]", "[3, NaN]", "not_finite", D2A.format(".vector[1]")),
    ("[3, 4.5]", "[Infinity, 1]", "not_finite", D2A.format(".vector[0]")),
    ("[3, 4.5]", "[3, -Infinity]", "not_finite", D2A.format(".vector[1]")),
    ("[3, 4.5]", "[3, 1e999]", "number_out_of_range", D2A.format(".vector[1]")),
    ("[3, 4.5]", f"[3, {'1' * 5000}]", "number_out_of_range", D2A.format(".vector[1]")),
    ("[0.6, 0.8]", f"[0.6, {'1' * 309}]", "not_normalized", "$.items[3].vector"),
    ('"dimension": 2', f'"dimension": {"9" * 400}', "number_out_of_range", A.format(".dimension")),
]


@pytest.mark.parametrize(("old", "new", "code", "place"), RAW_REFUSALS)
def test_a_fault_of_the_json_text_is_one_problem_at_its_place(
    old: str, new: str, code: str, place: str
) -> None:
    text = json.dumps(VALID)
    assert old in text
    (problem,) = problems_of(text.replace(old, new, 1).encode())
    assert problem.code == code
    assert problem.place.startswith(place)


@pytest.mark.parametrize("top", ["[]", "null", "3", '"x"', "NaN"])
def test_a_top_level_that_is_no_object_is_refused(top: str) -> None:
    (problem,) = problems_of(top.encode())
    assert (problem.code in ("wrong_type", "not_finite"), problem.place) == (True, "$")


LOOK_ALIKES: dict[str, tuple[Mutation, ...]] = {
    "space": (put("contracts", 0, "space_id", NFC), put("contracts", 1, "space_id", NFD)),
    "item": (put("items", 1, "item_id", NFC), put("items", 2, "item_id", NFD)),
    "reference": (put("items", 6, "item_id", NFC), put("queries", 1, "relevance", {NFD: 1})),
    "case": (put("queries", 0, "case_id", NFC), put("queries", 1, "case_id", NFD)),
    "acl": (put("items", 0, "acl", [NFC]), put("items", 6, "acl", ["staff", NFD])),
    "subject": (put("items", 0, "acl", [NFC]), put("queries", 0, "subject_groups", ["staff", NFD])),
    "roles": (put("contracts", 0, "query_role", NFC), put("contracts", 0, "document_role", NFD)),
    "subgroup": (put("queries", 0, "subgroups", [NFC, NFD]),),
    "model": (put("contracts", 0, "model", NFC), put("contracts", 1, "model", NFD)),
}


@pytest.mark.parametrize("kind", LOOK_ALIKES)
def test_two_spellings_of_one_name_are_refused_and_told_apart(kind: str) -> None:
    found = [p for p in problems(mutated(*LOOK_ALIKES[kind])) if p.code == "ambiguous_id"]
    assert len(found) == 1
    assert "caf\\u00e9" in found[0].found
    assert "cafe\\u0301" in found[0].found


def test_the_nearest_allowed_field_is_named() -> None:
    (missing, unknown) = problems(mutated(drop("items", 0, "acl"), put("items", 0, "ACLs", [])))
    assert (missing.code, unknown.code) == ("missing_field", "unknown_field")
    assert missing.found == "no acl"
    assert "did you mean acl?" in unknown.remedy


def test_messages_say_what_was_found_and_what_is_allowed() -> None:
    (problem,) = problems(mutated(put("items", 0, "vector", [True, True])))
    assert str(problem) == (
        'f.json: $.items[0].vector[0] (item "q1" in space "a"): wrong_type: '
        "found true (and 1 more like it in this vector); a number is needed"
    )
    (problem,) = problems(mutated(put("items", 4, "acl", ["board", "x"])))
    assert problem.found == '"d2", which "b" opens to "board", "x" only'


def test_faults_all_over_a_file_are_reported_at_once_in_order() -> None:
    tree = mutated(
        put("queries", 1, "relevance", "d2", 9),
        put("queries", 0, "subject_groups", ["nobody"]),
        put("items", 5, "vector", [2, 0]),
        put("items", 3, "vector", [1]),
        put("items", 0, "text", "  "),
        put("contracts", 0, "metric", "manhattan"),
        put("extra", {}),
    )
    assert [(p.code, p.place.split(" ")[0]) for p in problems(tree)] == [
        ("unknown_field", "$.extra"),
        ("unknown_metric", "$.contracts[0].metric"),
        ("blank_text", "$.items[0].text"),
        ("wrong_dimension", "$.items[3].vector"),
        ("not_normalized", "$.items[5].vector"),
        ("gold_unreadable", "$.queries[0].relevance.d1"),
        ("gold_unreadable", "$.queries[0].relevance.d2"),
        ("bad_grade", "$.queries[1].relevance.d2"),
    ]


@pytest.mark.parametrize(
    "mutate",
    [
        put("contracts", 0, "x"),  # any item could be of that space
        drop("contracts", 0, "space_id"),
        put("contracts", 0, "document_role", 5),
        put("contracts", 0, "dimension", None),
        put("contracts", 0, "dtype", None),
        put("contracts", None),
        drop("items", 0, "item_id"),  # any query could mean that item
        drop("items", 0, "space_id"),
        put("items", 0, "space_id", "typo"),
        put("items", 0, "role", "typo"),
        put("items", 1, "acl", [7]),
        put("items", None),
        put("items", 0, None),
        put("queries", 0, "subject_groups", 7),
    ],
)
def test_what_rests_on_a_broken_record_is_not_reported_again(mutate: Mutation) -> None:
    assert len(problems(mutated(mutate))) == 1


def test_an_empty_item_list_is_reported_for_each_space_and_role_only() -> None:
    codes = [p.code for p in problems(mutated(put("items", [])))]
    assert codes == ["space_without_role"] * 4


def test_what_is_declared_twice_is_relied_on_only_where_both_agree() -> None:
    # The wrong one stands first: taken as it is, it would condemn the items and cases after it.
    space = contract_of("a", dimension=3, query_role="ask")
    tree = mutated(lambda tree: tree["contracts"].insert(0, space))
    assert [p.code for p in problems(tree)] == ["duplicate_space"]
    item = item_of("d2", "a", [1, 1], acl=["nobody"], role="query")
    tree = mutated(lambda tree: tree["items"].insert(0, item))
    assert [p.code for p in problems(tree)] == ["duplicate_item"]


def test_a_second_spelling_used_throughout_is_one_problem() -> None:
    spelled = (put("items", n, "acl", 1, NFD) for n in (1, 3, 4, 5))
    found = problems(mutated(put("items", 0, "acl", 1, NFC), put("items", 2, "acl", []), *spelled))
    assert [(p.code, p.place.split(" ")[0]) for p in found] == [
        ("ambiguous_id", "$.items[1].acl[1]"),
        ("empty_groups", "$.items[2].acl"),
    ]


def test_problems_beyond_the_limit_are_counted_off() -> None:
    tree = mutated(*(put("items", n, "text", "") for n in range(7)))
    data = json.dumps(tree).encode()
    assert len(problems_of(data)) == 7
    for limit, truncated in ((7, False), (6, True), (1, True)):
        with pytest.raises(InputError) as caught:
            parse_fixture(data, "f.json", max_problems=limit)
        assert [p.place[:10] for p in caught.value.problems] == [
            f"$.items[{n}]" for n in range(limit)
        ]
        assert caught.value.truncated is truncated
    with pytest.raises(UsageError):
        parse_fixture(data, "f.json", max_problems=0)


def test_files_are_named_as_the_user_named_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.json").write_text("{}")
    with pytest.raises(InputError) as caught:
        load_fixture("./bad.json")
    assert caught.value.problems[0].file == "./bad.json"
    with pytest.raises(InputError) as caught:
        load_fixture("bad.json", max_bytes=1)
    assert caught.value.problems[0].code == "file_too_large"


def test_more_spaces_than_can_be_numbered_are_refused() -> None:
    # space_no is an int16: 32,767 spaces.
    tree = mutated(
        put("contracts", [contract_of(f"s{n}") for n in range(32_768)]), put("items", [])
    )
    with pytest.raises(InputError) as caught:
        parse_fixture(json.dumps(tree).encode(), "f.json", max_problems=1_000_000)
    assert caught.value.problems[-1].place.startswith("$.contracts[32767]")
    assert "too_many_spaces" in {p.code for p in caught.value.problems}
