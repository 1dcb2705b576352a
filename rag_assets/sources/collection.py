"""A collection: documents, queries and judgements as a reader of any format yields them.

Not yet numbered and not yet tied to spaces; `numbering.corpus_of` does both. What a corpus cannot
hold (judgements of unknown documents) or should not (blank texts) is still here, so that
rag_assets.quality.collection can report all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import Metric
from rag_assets.canonical.corpus import CASES, ITEMS, QRELS
from rag_assets.sources.text_lines import TextFile

DOCUMENT, QUERY = "document", "query"  # the roles, also in the contracts of such suites

_flags = [(name, pa.bool_()) for name in ("was_nfc", "was_lf", "is_blank", "has_controls")]

# `text` is in its canonical form; the flags say what the source's spelling was. Large strings:
# a million abstracts pass 2 GB.
ITEMS_READ = pa.schema(
    [
        ("item_id", pa.string()),
        ("role", pa.string()),
        ("text", pa.large_string()),
        ITEMS.field("acl"),
        ("source_revision", pa.string()),
        ("content_sha256", pa.string()),
        ("place", pa.int64()),  # line or row in its file, from 1
        *_flags,
    ]
)
CASES_READ = pa.schema([f for f in CASES if f.name not in ("case_no", "query_item_no")])
# Positions in `cases` and `items`, and a grade.
QRELS_READ = pa.schema([("case_row", pa.int32()), ("item_row", pa.int32()), QRELS.field("grade")])
ORPHANS = pa.schema(
    [
        ("file", pa.string()),
        ("place", pa.int64()),
        ("query_id", pa.string()),
        ("document_id", pa.string()),
        ("unknown", pa.string()),  # "query", "document" or "both"
    ]
)
FILES = pa.schema(
    [
        ("file", pa.string()),
        ("lines", pa.int64()),
        ("byte_order_mark", pa.bool_()),
        ("lf_ends", pa.int64()),
        ("crlf_ends", pa.int64()),
        ("comments", pa.int64()),
        ("blank_at_end", pa.int64()),
    ]
)
LEFT_OUT = (
    "queries_of_other_splits",
    "unjudged_queries",
    "blank_documents",
    "orphan_judgements",
    "repeated_judgements",
)


@dataclass(frozen=True)
class GivenVectors:
    """Vectors that the source itself holds, of one space.

    `documents: dtype[n_documents, d]`, `queries: dtype[n_queries, d]`, rows as in the collection,
    possibly memory-mapped; `metric` where the source states one.
    """

    documents: np.ndarray
    queries: np.ndarray
    metric: Metric | None
    document_file: str
    query_file: str


@dataclass(frozen=True)
class Neighbours:
    """A source's own ground truth: the nearest documents of each query, best first.

    `rows: int64[n_queries, depth]` into the documents; `distances: float[n_queries, depth]` as the
    file gives them, or None.
    """

    rows: np.ndarray
    distances: np.ndarray | None
    file: str


@dataclass(frozen=True)
class Collection:
    """A source as read. `items` follows ITEMS_READ: documents, then the query item of each case.

    `cases` follows CASES_READ, `qrels` QRELS_READ, `orphans` ORPHANS (judgements of what the source
    does not hold), `files` FILES. `file_of` gives the file of each role; `left_out` counts what the
    options or a rule left out, under the names in LEFT_OUT.
    """

    items: pa.Table
    cases: pa.Table
    qrels: pa.Table
    orphans: pa.Table
    files: pa.Table
    file_of: Mapping[str, str]
    left_out: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(LEFT_OUT, 0))
    vectors: GivenVectors | None = None
    neighbours: Neighbours | None = None

    @property
    def document_count(self) -> int:
        return len(self.items) - len(self.cases)


def file_facts(files: Iterable[TextFile]) -> pa.Table:
    """What reading these text files has shown, as FILES."""
    rows = [
        (f.shown, f.lines, f.byte_order_mark, f.lf_ends, f.crlf_ends, f.comments, f.blank_at_end)
        for f in files
    ]
    return pa.Table.from_pylist(
        [dict(zip(FILES.names, row, strict=True)) for row in rows], schema=FILES
    )
