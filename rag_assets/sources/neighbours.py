"""Sets of vectors with their nearest neighbours, as approximate search is measured on.

They hold no texts and no judgements: documents and queries are named by position, with leading
zeros so that the order of ids is that of positions, and nothing is relevant. Their ground truth is
kept beside and cross-checked with ours (rag_assets.quality.ground_truth).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from rag_assets.canonical.contracts import Metric
from rag_assets.errors import UsageError
from rag_assets.sources.collection import (
    CASES_READ,
    DOCUMENT,
    FILES,
    ITEMS_READ,
    ORPHANS,
    QRELS_READ,
    QUERY,
    Collection,
    GivenVectors,
    Neighbours,
)
from rag_assets.sources.faults import refuse
from rag_assets.sources.options import SourceOptions
from rag_assets.sources.records import item_batch
from rag_assets.sources.strict_json import WHOLE_FILE
from rag_assets.sources.vecs import read_vecs
from rag_assets.sources.vector_files import load_npy

_BATCH = 65_536


def read_neighbour_files(
    documents: Path,
    queries: Path,
    options: SourceOptions,
    *,
    neighbours: Path | None = None,
    metric: Metric | None = None,
    shown: str | None = None,
) -> Collection:
    """Vectors in .fvecs, .bvecs or .npy, neighbours in .ivecs or .npy; bytes become float32.

    `shown` is what problems call the folder of all files. Raises InputError; UsageError for groups
    that come from a field.
    """

    def name(path: Path) -> str:
        return os.fspath(path) if shown is None else os.path.join(shown, path.name)

    base, asked = (_floats(_read(path, name(path))) for path in (documents, queries))
    truth = None
    if neighbours is not None:
        rows = _read(neighbours, name(neighbours))
        if rows.dtype.kind not in "iu":
            remedy = "neighbours are positions, which are integers"
            refuse("wrong_dtype", name(neighbours), WHOLE_FILE, str(rows.dtype), remedy)
        truth = Neighbours(rows.astype(np.int64), None, name(neighbours))
    given = GivenVectors(base, asked, metric, name(documents), name(queries))
    return positional_collection(given, truth, options)


def read_vecs_folder(
    folder: str | Path, options: SourceOptions, shown: str | None = None
) -> Collection:
    """A folder of *base.fvecs or .bvecs, *query.fvecs or .bvecs and perhaps *groundtruth.ivecs.

    The files name no metric: that of the space's contract is taken on trust, and a ground truth in
    another metric will not agree. Raises as `read_neighbour_files`.
    """
    at, name = Path(folder), shown or os.fspath(folder)

    def one(what: str, *suffixes: str) -> Path | None:
        there = [path for s in suffixes for path in sorted(at.glob(f"*{what}{s}"))]
        if len(there) > 1:
            found = " and ".join(path.name for path in there)
            refuse("ambiguous_file", name, WHOLE_FILE, found, "keep one of them")
        return there[0] if there else None

    base, asked = one("base", ".fvecs", ".bvecs"), one("query", ".fvecs", ".bvecs")
    if base is None or asked is None:
        remedy = "the folder holds *base.fvecs and *query.fvecs (or .bvecs)"
        refuse("file_not_found", name, WHOLE_FILE, "no such files", remedy)
    truth = one("groundtruth", ".ivecs")
    return read_neighbour_files(base, asked, options, neighbours=truth, shown=name)


def positional_collection(
    vectors: GivenVectors, neighbours: Neighbours | None, options: SourceOptions
) -> Collection:
    """A collection of vectors without texts. A text says which vector of which file it stands for.

    Raises InputError for ground truth of another number of queries, or that names documents twice
    or beyond the end; UsageError for settings that need fields.
    """
    acl, asking = options.document_groups(), options.asking_groups()
    if acl.field or asking.field or options.subgroups or options.source_revision.field:
        raise UsageError("a set of vectors has no fields; state constant groups and revision only")
    count, asked = len(vectors.documents), len(vectors.queries)
    if neighbours is not None:
        _check_neighbours(neighbours, count, asked)
    document_ids, query_ids = _positions(count), _positions(asked)
    item_ids = [options.query_prefix + query_id for query_id in query_ids]
    revision = options.source_revision.constant

    def batches() -> Iterator[pa.RecordBatch]:
        for role, ids, file, groups in (
            (DOCUMENT, document_ids, vectors.document_file, acl.constant),
            (QUERY, item_ids, vectors.query_file, asking.constant),
        ):
            name = os.path.basename(file)
            for start in range(0, len(ids), _BATCH):
                part = ids[start : start + _BATCH]
                places = range(start, start + len(part))
                texts = [f"vector {place} of {name} ({role})" for place in places]
                many = len(part)
                yield item_batch(
                    role, part, texts, [sorted(groups)] * many, [revision] * many, places
                )

    cases = pa.table(
        [
            pa.array(query_ids, pa.string()),
            pa.array(item_ids, pa.string()),
            pa.array([sorted(asking.constant)] * asked, CASES_READ.field("subject_groups").type),
            pa.array([[]] * asked, CASES_READ.field("subgroups").type),
            pa.nulls(asked, pa.string()),
        ],
        schema=CASES_READ,
    )
    return Collection(
        items=pa.Table.from_batches(batches(), ITEMS_READ),
        cases=cases,
        qrels=QRELS_READ.empty_table(),
        orphans=ORPHANS.empty_table(),
        files=FILES.empty_table(),
        file_of={DOCUMENT: vectors.document_file, QUERY: vectors.query_file},
        vectors=vectors,
        neighbours=neighbours,
    )


def _positions(count: int) -> list[str]:
    width = len(str(max(0, count - 1)))
    return [f"{position:0{width}d}" for position in range(count)]


def _check_neighbours(neighbours: Neighbours, count: int, asked: int) -> None:
    rows = neighbours.rows
    if rows.ndim != 2 or len(rows) != asked:
        remedy = f"a row of neighbours for each of {asked} queries is needed"
        refuse("wrong_length", neighbours.file, WHOLE_FILE, f"shape {rows.shape}", remedy)
    if neighbours.distances is not None and neighbours.distances.shape != rows.shape:
        found = f"distances of shape {neighbours.distances.shape}"
        refuse("wrong_length", neighbours.file, WHOLE_FILE, found, f"they need shape {rows.shape}")
    outside = np.flatnonzero(((rows < 0) | (rows >= count)).any(axis=1))
    if len(outside):
        remedy = f"neighbours are positions from 0 to {count - 1}"
        place = f"query {outside[0]}"
        found = str(rows[outside[0]][(rows[outside[0]] < 0) | (rows[outside[0]] >= count)][0])
        refuse("unknown_neighbour", neighbours.file, place, found, remedy)
    ordered = np.sort(rows, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        place = f"query {twice[0]}"
        found = "a document more than once"
        refuse("repeated_neighbour", neighbours.file, place, found, "each neighbour is named once")


def _read(path: Path, shown: str) -> np.ndarray:
    return load_npy(path, shown) if path.suffix == ".npy" else read_vecs(path, shown)


def _floats(values: np.ndarray) -> np.ndarray:
    """Bytes are whole numbers up to 255 and exact in float32; floats stay what they are."""
    return values.astype(np.float32) if values.dtype == np.uint8 else values
