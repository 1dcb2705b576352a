"""Folders of tables as MTEB's retrieval tasks are published, in Parquet or Arrow.

    corpus.parquet or corpus/*.parquet       _id (or id), title, text, further columns
    queries.parquet or queries/*.parquet     _id (or id), text, further columns
    qrels.parquet or qrels/<split>*.parquet  query-id, corpus-id, score

Shards are read in order of name; `test-00000-of-00002` belongs to the split `test`. Scores may be
floats if each is a whole number. Columns of vectors are left to `read_table_vectors`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.measures import MAX_GRADE, MIN_GRADE
from rag_assets.sources.assembly import JudgedFile, assemble
from rag_assets.sources.beir import chosen_splits
from rag_assets.sources.collection import Collection
from rag_assets.sources.columnar import (
    TABLE_SUFFIXES,
    id_column,
    is_vector_type,
    read_vector_column,
    require_text,
    row_records,
    table_batches,
    table_schema,
)
from rag_assets.sources.faults import Faults, refuse
from rag_assets.sources.judgements import GRADE_REMEDY, JudgedLines
from rag_assets.sources.options import SourceOptions
from rag_assets.sources.records import Origin, Record, read_documents, read_queries
from rag_assets.sources.strict_json import WHOLE_FILE, excerpt
from rag_assets.sources.vector_files import align

QRELS_COLUMNS = ("query-id", "corpus-id", "score")
_SHARD = re.compile(r"-\d+-of-\d+$")


def read_mteb(folder: str | Path, options: SourceOptions, shown: str | None = None) -> Collection:
    """The collection in a folder of tables. Raises as `read_beir` does."""
    at, name = Path(folder), shown or os.fspath(folder)
    faults = Faults(options.max_problems)
    documents, origin = _records(at, name, "corpus")
    queries, query_origin = _records(at, name, "queries")
    items = read_documents(documents, origin, options, faults)
    query_items, cases = read_queries(queries, query_origin, options, faults)
    splits = _splits(at, name)
    place = os.path.join(name, "qrels")
    chosen = chosen_splits([split or "" for split in splits], options.splits, place)
    judged = [
        JudgedFile(
            split, file, _judgements(paths, file, faults), (split or "") in chosen, unit="row"
        )
        for split, (file, paths) in splits.items()
    ]
    return assemble((items, origin), (query_items, cases, query_origin), judged, options, faults)


def read_table_vectors(
    folder: str | Path,
    column: str,
    corpus: Corpus,
    contract: SpaceContract,
    *,
    shown: str | None = None,
    ignore_extra: bool = False,
    into: Path | None = None,
) -> EmbeddedSpace:
    """The vectors in a column of the folder's corpus and queries; see `vector_files.align`."""
    at, name = Path(folder), shown or os.fspath(folder)
    documents, queries = (
        read_vector_column(*tables(at, name, part), column) for part in ("corpus", "queries")
    )
    return align(documents, queries, corpus, contract, ignore_extra=ignore_extra, into=into)


def tables(folder: Path, shown: str, part: str) -> tuple[list[Path], str]:
    """The files of one part of a folder, and what problems call them. Raises InputError."""
    single = [folder / (part + suffix) for suffix in TABLE_SUFFIXES]
    several = [p for s in TABLE_SUFFIXES for p in sorted((folder / part).glob(f"*{s}"))]
    there = [path for path in single if path.is_file()]
    if len(there) + bool(several) > 1:
        found = f"{there[0].name} and others"
        refuse("ambiguous_file", shown, WHOLE_FILE, found, f"keep one {part}")
    if there:
        return there, os.path.join(shown, there[0].name)
    if not several:
        remedy = f"{part}{' or '.join(TABLE_SUFFIXES)}, or a folder {part} of such files"
        refuse("file_not_found", shown, WHOLE_FILE, f"no {part}", remedy)
    return several, os.path.join(shown, part)


def _records(folder: Path, shown: str, part: str) -> tuple[Iterator[Record], Origin]:
    paths, file = tables(folder, shown, part)
    schema = table_schema(paths[0], file)
    columns = [field.name for field in schema if not is_vector_type(field.type)]
    return row_records(paths, file, columns), Origin(file, "row", id_column(schema, file))


def _splits(folder: Path, shown: str) -> dict[str | None, tuple[str, list[Path]]]:
    paths, file = tables(folder, shown, "qrels")
    if paths[0].parent == folder:
        return {None: (file, paths)}
    splits: dict[str | None, tuple[str, list[Path]]] = {}
    for path in paths:
        split = _SHARD.sub("", path.stem)
        splits.setdefault(split, (os.path.join(file, split), []))[1].append(path)
    return splits


def _judgements(paths: Sequence[Path], shown: str, faults: Faults) -> Iterator[JudgedLines]:
    place = 0
    for path in paths:
        schema = table_schema(path, shown)
        for name in QRELS_COLUMNS[:2]:
            require_text(schema, name, shown)
        at = schema.get_field_index("score")
        held = schema.field(at).type if at >= 0 else None
        if held is None or not (pa.types.is_integer(held) or pa.types.is_floating(held)):
            remedy = "a column score of integers is needed"
            refuse("bad_grade", shown, "column score", str(held or "no such column"), remedy)
        for batch in table_batches(path, shown, QRELS_COLUMNS):
            places = np.arange(place + 1, place + 1 + len(batch))
            place += len(batch)
            yield _judged(batch, places, shown, faults)


def _judged(batch: pa.RecordBatch, places: np.ndarray, shown: str, faults: Faults) -> JudgedLines:
    queries, documents = (batch.column(n).cast(pa.string()) for n in QRELS_COLUMNS[:2])
    raw = batch.column("score")
    grades = pc.fill_null(raw.cast(pa.float64(), safe=False), float("nan")).to_numpy()
    sound = (grades == np.rint(grades)) & (grades >= MIN_GRADE) & (grades <= MAX_GRADE)
    for row in np.flatnonzero(~sound)[: faults.max_problems + 1]:
        found = excerpt(raw[int(row)].as_py())
        faults.add("bad_grade", shown, f"row {places[row]}, score", found, GRADE_REMEDY)
    for name, ids in zip(QRELS_COLUMNS[:2], (queries, documents), strict=True):
        blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(ids), ""), True)
        blank = blank.to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(blank)[: faults.max_problems + 1]:
            found, remedy = "no visible character", "every judgement names a query and a document"
            faults.add("blank_identifier", shown, f"row {places[row]}, {name}", found, remedy)
        sound &= ~blank
    kept = pa.array(np.flatnonzero(sound))
    return JudgedLines(
        queries.take(kept), documents.take(kept), grades[sound].astype(np.int8), places[sound]
    )
