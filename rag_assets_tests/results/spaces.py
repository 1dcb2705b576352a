"""Small spaces, items and cases, made of plain lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import Dtype, Metric, SpaceContract
from rag_assets.canonical.corpus import CASES, ITEMS, QRELS, SPACE_ITEMS, Corpus
from rag_assets.embeddings.space import EmbeddedSpace

Acls = Sequence[Sequence[str] | None]


def contract(dimension: int, metric: Metric, dtype: Dtype = "float32") -> SpaceContract:
    return SpaceContract(
        "s", "hand", "toy", "v1", dimension, metric, False, "query", "document", dtype
    )


def _rows(documents: int, queries: int, acls: Acls | None) -> list[dict[str, object]]:
    """Documents d000, d001, ... then queries q000, ...: ids ascend with their numbers."""
    acls = [["all"]] * documents if acls is None else acls
    rows: list[dict[str, object]] = []
    for number in range(documents + queries):
        document = number < documents
        name = f"d{number:03}" if document else f"q{number - documents:03}"
        rows.append(
            {
                "space_no": 0,
                "item_no": number,
                "item_id": name,
                "role": "document" if document else "query",
                "text": name,
                "acl": acls[number] if document else ["all"],
                "source_revision": "r1",
                "content_sha256": "0" * 64,
            }
        )
    return rows


def item_table(documents: int, queries: int, acls: Acls | None = None) -> pa.Table:
    return pa.Table.from_pylist(_rows(documents, queries, acls), schema=ITEMS)


def embedded_space(
    documents: np.ndarray | Sequence[Sequence[float]],
    queries: np.ndarray | Sequence[Sequence[float]],
    metric: Metric,
    acls: Acls | None = None,
    dtype: Dtype = "float32",
) -> EmbeddedSpace:
    vectors = np.concatenate([np.asarray(documents), np.asarray(queries)]).astype(dtype)
    items = pa.Table.from_pylist(_rows(len(documents), len(queries), acls), schema=SPACE_ITEMS)
    return EmbeddedSpace(contract(vectors.shape[1], metric, dtype), items, vectors)


def case_table(queries: Sequence[int], groups: Sequence[Sequence[str]], documents: int) -> pa.Table:
    """One case per (query number, groups); queries are numbered behind the documents."""
    rows = [
        {
            "case_no": number,
            "case_id": f"c{number}",
            "query_item_no": documents + query,
            "query_item_id": f"q{query:03}",
            "subject_groups": list(held),
            "subgroups": [],
            "split": None,
        }
        for number, (query, held) in enumerate(zip(queries, groups, strict=True))
    ]
    return pa.Table.from_pylist(rows, schema=CASES)


def corpus_of(space: EmbeddedSpace, items: pa.Table, cases: pa.Table) -> Corpus:
    return Corpus(
        (space.contract,), items, space.items, cases, QRELS.empty_table(), {"s": space.vectors}
    )
