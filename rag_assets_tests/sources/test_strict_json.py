"""Files that are not one clean JSON document are refused with a place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_assets.errors import InputError, Problem
from rag_assets.sources.strict_json import Faulty, excerpt, parse_json, read_limited


def refusal(data: bytes) -> Problem:
    with pytest.raises(InputError) as caught:
        parse_json(data, "some/file.json")
    (problem,) = caught.value.problems
    assert problem.file == "some/file.json"
    assert str(caught.value).isprintable()  # one line
    return problem


def read_refusal(path: str | Path, max_bytes: int = 100) -> Problem:
    with pytest.raises(InputError) as caught:
        read_limited(path, max_bytes)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    return problem


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        (b"", "empty_file", "whole file"),
        (b" \r\n\t", "empty_file", "whole file"),
        (b"\xef\xbb\xbf{}", "byte_order_mark", "byte 0 (line 1)"),
        ("{}".encode("utf-16"), "not_utf8", "byte 0 (line 1)"),
        ("{}".encode("utf-16-le"), "not_utf8", "byte 0 (line 1)"),
        ("{}".encode("utf-32-be"), "not_utf8", "byte 0 (line 1)"),
        # The bytes of the first line: 7 of [ "caf, é in Latin-1 stands at 5 of the second.
        (b'["ok",\n"caf\xe9"]', "not_utf8", "byte 11 (line 2)"),
        (b'["\xed\xa0\x80"]', "not_utf8", "byte 2 (line 1)"),  # a surrogate, encoded
        (b'{"a": 1,\n "b": 2,}', "syntax_error", "line 2, column 9"),
        (b'{"a": 1', "syntax_error", "line 1, column 8"),
        (b"{'a': 1}", "syntax_error", "line 1, column 2"),
        (b"{} {}", "syntax_error", "line 1, column 4"),
        (b'["a\nb"]', "syntax_error", "line 1, column 4"),  # a raw line end inside a string
        (b"[01]", "syntax_error", "line 1, column 3"),
        (b"[+1]", "syntax_error", "line 1, column 2"),
        (b"[1] // why", "syntax_error", "line 1, column 5"),
        (b"[\n" * 33, "too_deep", "line 33, column 1"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "too_deep", "line 1, column 161"),  # 32 * 5 + 1
        (b"[" * 1_000_000, "too_deep", "line 1, column 33"),
    ],
)
def test_whole_file_faults_are_refused(data: bytes, code: str, place: str) -> None:
    problem = refusal(data)
    assert (problem.code, problem.place) == (code, place)


def test_thirty_two_levels_are_allowed_and_brackets_in_strings_do_not_count() -> None:
    deepest = b"[" * 32 + b"]" * 32
    assert isinstance(parse_json(deepest, "f"), list)
    assert parse_json(b'["' + b"[" * 50 + b'\\"[["]', "f") == ["[" * 50 + '"[[']


def test_an_unterminated_string_of_escaped_quotes_is_scanned_once() -> None:
    # Scanned again from each quote this takes hours, not the blink it should.
    assert refusal(b'["' + b'\\"' * 1_000_000).code == "syntax_error"


@pytest.mark.parametrize(
    ("literal", "code"),
    [
        (b"NaN", "not_finite"),
        (b"Infinity", "not_finite"),
        (b"-Infinity", "not_finite"),
        (b"9" * 400, "number_out_of_range"),
        (b"-" + b"9" * 400, "number_out_of_range"),
        (b"9" * 5000, "number_out_of_range"),  # int() itself raises beyond 4300 digits
        (b"9" * 309, "number_out_of_range"),  # float64 ends at 1.797e308, also of 309 digits
        (b'{"b": 1, "b": 1}["b"]'[:16], "duplicate_key"),
    ],
)
def test_values_json_cannot_mean_become_faulty_leaves(literal: bytes, code: str) -> None:
    tree = parse_json(b'{"a": [1, ' + literal + b"]}", "f")
    assert isinstance(tree, dict)
    leaf = tree["a"][1]
    if isinstance(leaf, dict):
        leaf = leaf["b"]
    assert isinstance(leaf, Faulty)
    assert leaf.code == code


def test_the_largest_integers_of_float64_are_plain_numbers() -> None:
    # 17 followed by 307 zeros has 309 digits and is below 1.797e308.
    large = b"17" + b"0" * 307
    assert parse_json(b"[" + large + b", -" + large + b"]", "f") == [17 * 10**307, -17 * 10**307]


def test_a_repeated_key_is_faulty_whichever_value_came_last() -> None:
    tree = parse_json(b'{"a": NaN, "b": 2, "a": 1, "a": NaN}', "f")
    assert tree == {"a": Faulty("duplicate_key", 'the key "a" 3 times', "keep one of them"), "b": 2}


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    assert read_refusal(tmp_path / "none.json").code == "file_not_found"
    assert read_refusal(tmp_path).code == "not_a_file"
    assert read_refusal(f"{tmp_path}/a\0b").code == "unreadable_file"
    (tmp_path / "file").write_bytes(b"{}")
    assert read_refusal(tmp_path / "file" / "below").code == "unreadable_file"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all files")
def test_a_file_without_read_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_bytes(b"{}")
    path.chmod(0)
    assert read_refusal(path).code == "unreadable_file"


def test_size_is_limited_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(b"x" * 100)
    assert read_limited(path, 100) == b"x" * 100
    path.write_bytes(b"x" * 101)
    problem = read_refusal(path, 100)
    assert (problem.code, problem.found) == ("file_too_large", "101 bytes")
    assert "100" in problem.remedy


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_an_endless_file_is_not_read_to_its_end() -> None:
    assert read_refusal("/dev/zero", 100).found == "more than 100 bytes"


def test_excerpts_are_short_and_on_one_line() -> None:
    assert excerpt("a\u2028b\ud800") == '"a\\u2028b\\ud800"'
    assert excerpt("é") == '"é"'
    assert len(excerpt("x" * 1000)) == 62  # 57 characters, three dots, two quotes
    assert excerpt(10**200) == "10000000000000000000... (201 characters)"
    assert excerpt([True, False]) == "a list of 2"
    assert excerpt(None) == "null"
