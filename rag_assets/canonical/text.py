"""One form for every text: LF line ends, Unicode NFC, and the hash of its UTF-8 bytes."""

from __future__ import annotations

import hashlib
import unicodedata


def normalize_text(text: str) -> str:
    """`text` with CRLF and CR turned into LF, in Unicode normalization form C."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def content_sha256(text: str) -> str:
    """SHA-256 (hex) over the UTF-8 bytes of the normalized text."""
    return hashlib.sha256(normalize_text(text).encode("utf-8")).hexdigest()
