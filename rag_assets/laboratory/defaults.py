"""Which index serves each space: a chain of recorded decisions in `<suite>/default_index.json`.

Every space starts with "exact". A decision says who, when, why and on what evidence, and is bound
to the one before it (`chained_log`), so that an edited file is refused as a whole.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag_assets import clock
from rag_assets.decisions.chained_log import (
    LogFile,
    append_record,
    locked,
    one_line,
    read_log,
    record_digest,
)
from rag_assets.errors import UsageError

EXACT = "exact"
_LOG = LogFile(
    name="default_index.json",
    records="decisions",
    fields=("space_id", "index_name", "by", "when", "why", "evidence"),
    optional=frozenset({"evidence"}),
    code="edited_default",
    remedy="defaults change through `rag-assets default-index` only: restore the file from version "
    "control, or remove it to go back to exact everywhere",
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Decision:
    """`when` is UTC in ISO 8601; `evidence` the SHA-256 of what the gate saw, None for a return to
    "exact"; `previous` the digest of the decision before, None for the first.
    """

    space_id: str
    index_name: str
    by: str
    when: str
    why: str
    evidence: str | None
    previous: str | None

    @property
    def digest(self) -> str:
        return record_digest(asdict(self))


def set_default_index(
    folder: Path,
    space_id: str,
    index_name: str,
    *,
    by: str,
    why: str,
    evidence_digest: str | None,
    eligible: bool,
) -> Decision:
    """Record a decision and return it.

    Raises UsageError for an index that is not eligible (going back to "exact" always is), without
    evidence, or without saying who and why; InputError for a file that was edited by hand.
    """
    by, why = one_line("by", by), one_line("why", why)
    for name, text in (("space", space_id), ("index", index_name)):
        one_line(name, text)
    if index_name != EXACT:
        if not eligible:
            raise UsageError(
                f"index {index_name!r} is not eligible as the default of space {space_id!r}; "
                "see the rows of index_promotion, every condition has to pass"
            )
        if evidence_digest is None or not _SHA256.fullmatch(evidence_digest):
            raise UsageError(
                f"evidence is {evidence_digest!r}; it must be the SHA-256 (hex) of the evidence"
            )
    record = {
        "space_id": space_id,
        "index_name": index_name,
        "by": by,
        "when": clock.utc_now().isoformat(timespec="seconds"),
        "why": why,
        "evidence": evidence_digest,
    }
    with locked(folder):
        return _decision(append_record(folder, _LOG, record))


def default_decisions(folder: Path) -> list[Decision]:
    """Every decision, oldest first; none if there is no file. A space's last one holds, and without
    one its default is exact. Raises InputError for a file that was edited by hand."""
    return [_decision(record) for record in read_log(folder, _LOG)]


def _decision(record: Any) -> Decision:
    return Decision(**record)
