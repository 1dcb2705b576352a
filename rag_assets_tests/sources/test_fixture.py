"""A fixture is loaded whole, or refused with everything that is wrong with it."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.canonical.corpus import CASES, ITEMS, QRELS, SPACE_ITEMS
from rag_assets.errors import InputError
from rag_assets.sources.fixture import load_fixture, parse_fixture
from rag_assets_tests.sources.tiny import (
    NFC,
    NFD,
    VALID,
    drop,
    mutated,
    parse,
    problems,
    put,
)


def test_a_valid_fixture_is_numbered_by_item_id_with_documents_before_queries() -> None:
    corpus = parse(VALID)
    # Ascending ids: d0, d1, d2, q1. Space a has no d0.
    assert corpus.items["item_id"].to_pylist() == ["d0", "d1", "d2", "q1"]
    assert corpus.items["item_no"].to_pylist() == [0, 1, 2, 3]
    assert corpus.space_items["space_no"].to_pylist() == [0, 0, 0, 1, 1, 1, 1]
    assert corpus.space_items["item_no"].to_pylist() == [1, 2, 3, 0, 1, 2, 3]
    assert corpus.space_items["role"].to_pylist()[-2:] == ["document", "ask"]
    assert corpus.items.schema == ITEMS
    assert corpus.space_items.schema == SPACE_ITEMS
    assert corpus.cases.schema == CASES
    assert corpus.qrels.schema == QRELS


def test_documents_come_first_even_if_a_query_id_is_smaller() -> None:
    tree = mutated(
        put("items", 0, "item_id", "a-query"),
        put("items", 5, "item_id", "a-query"),
        put("queries", 0, "query_item_id", "a-query"),
        put("queries", 1, "query_item_id", "a-query"),
    )
    corpus = parse(tree)
    assert corpus.items["item_id"].to_pylist() == ["a-query", "d0", "d1", "d2"]
    assert corpus.items_of("a")["item_id"].to_pylist() == ["d1", "d2", "a-query"]
    assert corpus.cases["query_item_no"].to_pylist() == [0, 0]


def test_vectors_stand_in_the_rows_of_their_space_and_are_read_only() -> None:
    corpus = parse(VALID)
    assert corpus.vectors["a"].tolist() == [[-1, 2], [3, 4.5], [1, 0]]  # d1, d2, q1
    assert corpus.vectors["b"].tolist() == [[-1, 0], [0.6, 0.8], [0, 1], [1, 0]]
    assert corpus.vectors["a"].dtype == np.float32
    assert corpus.vectors["b"].dtype == np.float64
    for matrix in corpus.vectors.values():
        assert matrix.flags.c_contiguous
        assert not matrix.flags.writeable


def test_the_first_declared_space_that_holds_an_item_is_canonical() -> None:
    corpus = parse(VALID)
    # Ascending ids: d0 (held by b only), d1, d2, q1.
    texts = corpus.items["text"].to_pylist()
    assert texts == ["text of d0", "text of d1", "text of d2", "text of q1"]
    reversed_spaces = parse(mutated(lambda tree: tree["contracts"].reverse()))
    assert reversed_spaces.items["text"].to_pylist()[1] == "another text of d1"
    # Each space keeps its own: d1 is open to guests in a only, and its text differs in b.
    acls = {space: corpus.items_of(space)["acl"].to_pylist() for space in ("a", "b")}
    assert acls["a"][0] == ["guests", "staff"]
    assert acls["b"][1] == ["staff"]
    hashes = corpus.items_of("b")["content_sha256"].to_pylist()
    assert hashes[1] == hashlib.sha256(b"another text of d1").hexdigest()


def test_cases_keep_file_order_and_judgements_point_to_item_numbers() -> None:
    corpus = parse(VALID)
    assert corpus.cases.to_pylist()[0] == {
        "case_no": 0,
        "case_id": "c1",
        "query_item_no": 3,
        "query_item_id": "q1",
        "subject_groups": ["board", "staff"],
        "subgroups": ["short", "english"],
        "split": None,
    }
    assert corpus.qrels.to_pylist() == [
        {"case_no": 0, "item_no": 1, "grade": 3},
        {"case_no": 0, "item_no": 2, "grade": 1},
        {"case_no": 1, "item_no": 2, "grade": 2},
    ]


def test_windows_line_ends_decomposed_accents_and_chinese_hash_as_their_normalized_twin(
    tmp_path: Path,
) -> None:
    text = "Où est la clé ?\n\t新同事第一周\nFin."
    question = mutated(put("items", 0, "text", text), put("items", 3, "text", text))
    plain, windows = tmp_path / "plain.json", tmp_path / "windows.json"
    plain.write_bytes(json.dumps(question, ensure_ascii=False, indent=1).encode("utf-8"))
    # The twin has Windows line ends in the texts and in the file, and decomposed accents.
    twin = json.dumps(question, ensure_ascii=False, indent=1).replace("\\n", "\\r\\n")
    twin = unicodedata.normalize("NFD", twin).replace("\n", "\r\n")
    windows.write_bytes(twin.encode("utf-8"))
    assert plain.read_bytes() != windows.read_bytes()
    one, two = load_fixture(plain), load_fixture(str(windows))
    assert one.items.equals(two.items)
    assert one.space_items.equals(two.space_items)
    expected = hashlib.sha256(text.encode("utf-8")).hexdigest()
    assert two.items["content_sha256"].to_pylist()[3] == expected
    assert two.items["text"].to_pylist()[3] == text


def test_what_is_unusual_but_sound_is_loaded() -> None:
    parse(
        mutated(
            put("items", 0, "item_id", "问 1"),  # inner spaces, other scripts
            put("items", 5, "item_id", "问 1"),
            put("queries", 0, "query_item_id", "问 1"),
            put("queries", 1, "query_item_id", "问 1"),
            put("items", 1, "vector", [10**300 // 10**290, -0.0]),
            put("items", 2, "vector", [1e38, 1e-60]),  # the second underflows, the first stays
            put("items", 4, "vector", [0, 1 + 9e-7]),
            put("items", 1, "text", "\ttabs and\nlines, \r old ones, \U0001f600"),
            put("contracts", 0, "revision", "b"),
        )
    )


def test_norms_are_those_of_the_stored_components() -> None:
    # In float32 0.6 and 0.8 are 0.60000002384 and 0.80000001192: norm 1 + 2.4e-8.
    float32 = put("contracts", 1, "dtype", "float32")
    parse(mutated(float32))
    # Above 1 float32 goes in steps of 1.192e-7; 8 steps are 9.54e-7 and 9 steps are 1.073e-6.
    # So 1.005e-6 is stored as 8 steps in float32, and as it stands in float64.
    eight = put("items", 4, "vector", [0, 1 + 1.005e-6])
    parse(mutated(float32, eight))
    assert [p.code for p in problems(mutated(eight))] == ["not_normalized"]
    nine = put("items", 4, "vector", [0, 1 + 1.02e-6])
    (problem,) = problems(mutated(float32, nine))
    assert problem.code == "not_normalized"
    assert problem.found == "norm 1.00000107"
    assert "rounded to float32" in problem.remedy


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_a_norm_that_search_could_not_multiply_is_refused(size: float) -> None:
    loose = [put("contracts", 1, "dtype", "float64"), put("contracts", 1, "normalized", False)]
    (problem,) = problems(mutated(*loose, put("items", 4, "vector", [size, size])))
    assert problem.code == "norm_out_of_range"


def _paths(tree: Any) -> list[tuple[Any, ...]]:
    steps = (
        list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []
    )
    return [(step, *rest) for step in steps for rest in ((), *_paths(tree[step]))]


ALL_PATHS = _paths(VALID)
_surrogates = st.text(st.characters(codec=None), max_size=5)
_junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.sampled_from([10**38, 10**39, 10**308, 10**400])
    | st.floats(allow_nan=True, allow_infinity=True)
    | _surrogates
    | st.sampled_from(["a", "b", "d1", "q1", "staff", "document", NFC, NFD, "dot", "float64"]),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(_surrogates, children, max_size=3)
    ),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(ALL_PATHS), st.none() | st.tuples(_junk)), min_size=1, max_size=3
    )
)
def test_any_mutation_loads_or_is_refused(
    changes: list[tuple[tuple[Any, ...], tuple[Any] | None]],
) -> None:
    tree = copy.deepcopy(VALID)
    for path, junk in changes:
        try:
            (drop(*path) if junk is None else put(*path, junk[0]))(tree)
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    data = json.dumps(tree).encode("ascii")
    refused: InputError | None = None
    try:
        corpus = parse_fixture(data, "f.json")
    except InputError as error:
        refused = error
    if refused is not None:
        assert all(line.isprintable() for line in refused.lines())
        return
    for contract in corpus.contracts:
        vectors = corpus.vectors[contract.space_id]
        rows = corpus.items_of(contract.space_id).num_rows
        assert vectors.shape == (rows, contract.dimension)
        assert np.isfinite(vectors).all()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_any_damage_to_the_bytes_loads_or_is_refused(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(json.dumps(VALID, ensure_ascii=False).encode())
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        data[at : at + rng.randint(0, 3)] = rng.choice(
            [b"", b"\x00", b"\xff", b'"', b"[", b"}", b",", b"9", b"e9", b"\\u", b"\\ud800"]
        )
    with suppress(InputError):
        parse_fixture(bytes(data), "f.json")
