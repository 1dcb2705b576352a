"""JSON that means one thing.

The standard decoder accepts repeated keys (the last wins), NaN and integers of any length (or
raises a bare ValueError for them). Here such a value becomes a `Faulty` leaf in the tree, so that
whoever walks the tree can name its place and go on; faults of the whole file raise InputError.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rag_assets.errors import InputError, Problem

MAX_DEPTH = 32
WHOLE_FILE = "whole file"

# A string is one token, terminated or not: otherwise an unterminated string full of escaped quotes
# would be scanned again from each of them.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|([\[{])|([\]}])', re.DOTALL)
_LONGEST_FINITE_INTEGER = 309  # digits of the largest float64


@dataclass(frozen=True, slots=True)
class Faulty:
    """Stands in a tree for a value that a plain JSON decoder would have let through."""

    code: str
    found: str
    remedy: str


def read_limited(path: str | Path, max_bytes: int) -> bytes:
    """The bytes of a file of at most `max_bytes`. Raises InputError; never reads much more."""
    file = os.fspath(path)
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            data = stream.read(max_bytes + 1) if size <= max_bytes else b""
    except FileNotFoundError:
        raise _refusal(file, "file_not_found", "no such file", "name an existing file") from None
    except IsADirectoryError:
        raise _refusal(file, "not_a_file", "a directory", "name a file") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "name a file that may be read"
        raise _refusal(file, "unreadable_file", reason, remedy) from None
    if size > max_bytes or len(data) > max_bytes:
        found = f"{size} bytes" if size > max_bytes else f"more than {max_bytes} bytes"
        remedy = f"at most {max_bytes} bytes are read (a setting)"
        raise _refusal(file, "file_too_large", found, remedy)
    return data


def parse_json(data: bytes, file: str) -> object:
    """The tree of a JSON document; nested at most `MAX_DEPTH` deep.

    Leaves may be `Faulty` (codes duplicate_key, not_finite, number_out_of_range); a float beyond
    float64 is still `inf`, and strings may hold lone surrogates. Raises InputError for bytes that
    are not UTF-8, a byte order mark, an empty file, a syntax error, and too deep a nesting.
    """
    text = _decode(data, file)
    if not text.strip(" \t\r\n"):
        raise _refusal(file, "empty_file", "nothing", "the file holds one JSON object")
    _check_depth(text, file)
    try:
        return load_strict(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos : error.pos + 20]
        near = f"at {excerpt(rest)}" if rest else "at the end of the file"
        place = f"line {error.lineno}, column {error.colno}"
        found = f"a syntax error {near} ({error.msg})"
        remedy = "write plain JSON: double quotes, no comments, no trailing commas"
        raise _refusal(file, "syntax_error", found, remedy, place) from None


def load_strict(text: str) -> object:
    """The tree of one JSON text, leaves as `parse_json` says. Raises json.JSONDecodeError.

    The decoder recurses: check the depth of a text from elsewhere first, or catch RecursionError.
    """
    return _decoder().decode(text)


@functools.cache
def _decoder() -> json.JSONDecoder:
    """Made once: a line of a large file is decoded in less time than a decoder is made."""
    return json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer)


def excerpt(value: object) -> str:
    """`value` as a person would recognize it in the file: one line, printable, short."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with {len(value)} keys"
    if isinstance(value, Faulty):
        return value.found
    if isinstance(value, float) and math.isinf(value):
        return "a number beyond float64"
    if isinstance(value, str):
        short = value if len(value) <= 60 else value[:57] + "..."
        return json.dumps(short, ensure_ascii=not short.isprintable())
    literal = json.dumps(value)
    return literal if len(literal) <= 40 else f"{literal[:20]}... ({len(literal)} characters)"


def _decode(data: bytes, file: str) -> str:
    remedy = "save the file as UTF-8 without a byte order mark"
    if data.startswith(b"\xef\xbb\xbf"):
        found = "a UTF-8 byte order mark"
        raise _refusal(file, "byte_order_mark", found, remedy, "byte 0 (line 1)")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in data[:4]:
        raise _refusal(file, "not_utf8", "UTF-16 or UTF-32 text", remedy, "byte 0 (line 1)")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{data[error.start]:02x} ({error.reason})"
        place = f"byte {error.start} (line {line})"
        raise _refusal(file, "not_utf8", found, remedy, place) from None


def _check_depth(text: str, file: str) -> None:
    """Before decoding: the decoder recurses, and its stack must not depend on the input."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token.lastindex == 1:
            depth += 1
            if depth > MAX_DEPTH:
                before = text[: token.start()]
                column = len(before) - (before.rfind("\n") + 1) + 1
                place = f"line {before.count(chr(10)) + 1}, column {column}"
                remedy = f"at most {MAX_DEPTH} levels of lists and objects are allowed"
                raise _refusal(file, "too_deep", f"level {depth}", remedy, place)
        elif token.lastindex == 2:
            depth -= 1


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        for key, count in Counter(key for key, _ in pairs).items():
            if count > 1:
                found = f"the key {excerpt(key)} {count} times"
                tree[key] = Faulty("duplicate_key", found, "keep one of them")
    return tree


def _constant(literal: str) -> Faulty:
    return Faulty("not_finite", literal, "write a finite number; JSON knows no NaN or Infinity")


def _integer(digits: str) -> int | Faulty:
    if len(digits) < _LONGEST_FINITE_INTEGER or (
        len(digits) <= _LONGEST_FINITE_INTEGER + 1 and math.isfinite(float(digits))
    ):
        return int(digits)
    found = f"an integer of {len(digits.lstrip('-'))} digits ({digits[:12]}...)"
    return Faulty("number_out_of_range", found, "write a number that fits the field's type")


def _refusal(file: str, code: str, found: str, remedy: str, place: str = WHOLE_FILE) -> InputError:
    return InputError([Problem(code, file, place, found, remedy)])
