"""Any collection in BEIR's layout, with rights, subgroups, revision and split as metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.errors import UsageError
from rag_assets.sources.collection import Collection
from rag_assets.sources.judgements import BEIR_HEADER

UNSPLIT = "all"  # the name of the split of judgements that have none

# How to read what `write_beir` wrote.
EXPORT_SETTINGS: Mapping[str, Any] = {
    "acl": {"field": "metadata.acl"},
    "subject_groups": {"field": "metadata.subject_groups"},
    "subgroups": ["metadata.subgroups"],
    "source_revision": {"field": "metadata.source_revision"},
    "split_field": "metadata.split",
}


def write_beir(collection: Collection, folder: Path) -> None:
    """Write corpus.jsonl, queries.jsonl and qrels/<split>.tsv into an existing folder.

    Reading them with EXPORT_SETTINGS gives the same items, cases and judgements, but for the order
    of subgroups and for judgements without a split, which get the split `all`. Vectors, ground
    truth and orphan judgements are not written. Raises UsageError for an id that a line of
    tab-separated columns cannot hold, and for a split that no file can be named after.
    """
    count = collection.document_count
    documents, queries = collection.items.slice(0, count), collection.items.slice(count)
    for ids in (documents["item_id"], collection.cases["case_id"]):
        if pc.any(pc.match_substring_regex(ids, r"[\t\r\n]")).as_py():
            raise UsageError("an id holds a tab or a line end, which BEIR's judgements cannot hold")
    with open(folder / "corpus.jsonl", "w", encoding="utf-8", newline="\n") as stream:
        for row in _rows(documents):
            metadata = {"acl": row["acl"], "source_revision": row["source_revision"]}
            _write(stream.write, row["item_id"], row["text"], metadata, title="")
    with open(folder / "queries.jsonl", "w", encoding="utf-8", newline="\n") as stream:
        for row, case in zip(_rows(queries), _rows(collection.cases), strict=True):
            names = ("subject_groups", "subgroups", "split")
            metadata = {name: case[name] for name in names if case[name] is not None}
            metadata["source_revision"] = row["source_revision"]
            _write(stream.write, case["case_id"], row["text"], metadata)
    (folder / "qrels").mkdir(exist_ok=True)
    qrels = pa.table(
        {
            "query": collection.cases["case_id"].take(collection.qrels["case_row"]),
            "document": documents["item_id"].take(collection.qrels["item_row"]),
            "grade": collection.qrels["grade"].cast(pa.string()),
            "split": pc.fill_null(
                collection.cases["split"].take(collection.qrels["case_row"]), UNSPLIT
            ),
        }
    )
    for split in pc.unique(qrels["split"]).to_pylist() or [UNSPLIT]:
        if "/" in split or split.startswith("."):
            raise UsageError(f"the split {split!r} cannot be the name of a file")
        part = qrels.filter(pc.equal(qrels["split"], split))
        lines = pc.binary_join_element_wise(part["query"], part["document"], part["grade"], "\t")
        text = "\n".join([BEIR_HEADER, *lines.to_pylist()]) + "\n"
        (folder / "qrels" / f"{split}.tsv").write_text(text, "utf-8", newline="\n")


def _rows(table: pa.Table) -> Iterator[dict[str, object]]:
    for batch in table.to_batches(max_chunksize=8_192):
        yield from batch.to_pylist()


def _write(
    write: Callable[[str], int], item_id: object, text: object, metadata: object, **more: object
) -> None:
    record = {"_id": item_id, **more, "text": text, "metadata": metadata}
    write(json.dumps(record, ensure_ascii=False) + "\n")
