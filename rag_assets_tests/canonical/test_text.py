"""Texts that look alike have one form and one hash."""

from __future__ import annotations

import hashlib
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from rag_assets.canonical.text import content_sha256, normalize_text


def test_windows_and_old_mac_line_ends_become_line_feeds() -> None:
    assert normalize_text("a\r\nb\rc\n\r\nd") == "a\nb\nc\n\nd"


def test_decomposed_accents_are_composed_and_chinese_is_kept() -> None:
    assert normalize_text("cafe\u0301 新同事") == "caf\u00e9 新同事"


def test_compatibility_forms_are_kept_apart() -> None:
    # NFKC would turn the ligature into "fi" and the superscript into "2".
    assert normalize_text("\ufb01 x\u00b2") == "\ufb01 x\u00b2"


def test_hash_is_sha256_over_the_utf8_bytes_of_the_normalized_text() -> None:
    # "é" composed is the two bytes c3 a9.
    assert content_sha256("cafe\u0301\r\n") == hashlib.sha256(b"caf\xc3\xa9\n").hexdigest()


@given(st.text())
def test_every_spelling_of_a_text_has_the_same_hash(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text).replace("\n", "\r\n")
    assert normalize_text(normalize_text(text)) == normalize_text(text)
    if "\r" not in text:
        assert content_sha256(decomposed) == content_sha256(text)
