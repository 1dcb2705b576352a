"""Vectors in files of their own, brought into the row order of a corpus by their ids.

A folder of a space holds `doc_vectors.npy`, `query_vectors.npy` and, line by line in the order of
their rows, `doc_ids.txt` and `query_ids.txt`. Ids are those of the source: a query's is its case
id.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.sources.faults import Faults, refuse
from rag_assets.sources.strict_json import WHOLE_FILE, excerpt
from rag_assets.sources.text_lines import TextFile, find_file
from rag_assets.sources.vector_checks import refuse_unsound

_BLOCK_ROWS = 65_536


@dataclass(frozen=True)
class NamedVectors:
    """`vectors: dtype[n, d]`, possibly memory-mapped, and the id of each row: `ids: string[n]`."""

    ids: pa.Array
    vectors: np.ndarray
    file: str

    def name(self, row: int) -> str:
        return str(self.ids[row].as_py())


def read_vector_folder(
    folder: str | Path,
    corpus: Corpus,
    contract: SpaceContract,
    *,
    shown: str | None = None,
    ignore_extra: bool = False,
    into: Path | None = None,
) -> EmbeddedSpace:
    """The vectors of a folder, aligned; see `align`. Raises InputError."""
    at, name = Path(folder), shown or os.fspath(folder)
    documents, queries = (
        read_npy(
            at / f"{what}_vectors.npy",
            find_file(at, name, f"{what}_ids.txt"),
            os.path.join(name, f"{what}_vectors.npy"),
        )
        for what in ("doc", "query")
    )
    return align(documents, queries, corpus, contract, ignore_extra=ignore_extra, into=into)


def read_npy(vectors: Path, ids: TextFile, shown: str) -> NamedVectors:
    """A memory-mapped .npy and the ids of its rows, one a line. Raises InputError."""
    matrix = load_npy(vectors, shown)
    batches = [lines.text for lines in ids.batches()]
    names = pa.chunked_array(batches, pa.string()).combine_chunks()
    if len(names) != len(matrix):
        remedy = f"one id for each of the {len(matrix)} rows of {shown}"
        refuse("wrong_length", ids.shown, WHOLE_FILE, f"{len(names)} ids", remedy)
    return NamedVectors(names, matrix, shown)


def load_npy(path: Path, shown: str) -> np.ndarray:
    """A .npy file, memory-mapped, read-only. Raises InputError."""
    try:
        matrix: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        refuse("file_not_found", shown, WHOLE_FILE, "no such file", "name an existing .npy file")
    except (OSError, ValueError, EOFError) as error:
        found = f"no readable array ({excerpt(str(error))})"
        refuse("unreadable_file", shown, WHOLE_FILE, found, "a complete .npy file of numbers")
    if matrix.ndim != 2:
        found = f"an array of shape {matrix.shape}"
        refuse("wrong_dimension", shown, WHOLE_FILE, found, "two axes: rows, components")
    return matrix


def align(
    documents: NamedVectors,
    queries: NamedVectors,
    corpus: Corpus,
    contract: SpaceContract,
    *,
    ignore_extra: bool = False,
    into: Path | None = None,
) -> EmbeddedSpace:
    """The vectors of a space in the order of its rows in `corpus`.

    Every item needs exactly one vector. Vectors of other ids are refused unless `ignore_extra`
    (queries of a split that was not chosen, say). With `into`, the vectors are written to that
    .npy file and memory-mapped; otherwise they are in memory. Raises InputError for missing,
    unknown and repeated ids, and for vectors that break the contract.
    """
    items = corpus.items_of(contract.space_id)
    is_document = pc.equal(items["role"], contract.document_role).to_numpy()
    count = int(is_document.sum())
    wanted = (items["item_id"].slice(0, count), _query_names(items.slice(count), corpus))
    faults = Faults()
    rows = []
    for given, names in zip((documents, queries), wanted, strict=True):
        rows.append(_rows(given, names.combine_chunks(), ignore_extra, faults))
    faults.raise_if_any()
    for given in (documents, queries):
        refuse_unsound(given.vectors, contract, given.file, given.name)
    shape = (len(items), contract.dimension)
    if into is None:
        matrix = np.empty(shape, contract.numpy_dtype)
    else:
        matrix = np.lib.format.open_memmap(into, "w+", contract.numpy_dtype, shape)
    for given, at, first in ((documents, rows[0], 0), (queries, rows[1], count)):
        for start in range(0, len(at), _BLOCK_ROWS):
            block = at[start : start + _BLOCK_ROWS]
            matrix[first + start : first + start + len(block)] = given.vectors[block]
    if isinstance(matrix, np.memmap) and into is not None:
        matrix.flush()
        matrix = np.load(into, mmap_mode="r")
    else:
        matrix.setflags(write=False)
    return EmbeddedSpace(contract, items, matrix)


def _query_names(items: pa.Table, corpus: Corpus) -> pa.ChunkedArray:
    """The id that the source gave each query item: the id of its first case, else its own."""
    row = pc.index_in(items["item_no"], corpus.cases["query_item_no"].combine_chunks())
    return pc.coalesce(corpus.cases["case_id"].combine_chunks().take(row), items["item_id"])


def _rows(
    given: NamedVectors, wanted: pa.StringArray, ignore_extra: bool, faults: Faults
) -> np.ndarray:
    """int64[n_wanted]: the row of each wanted id."""
    codes = pc.dictionary_encode(given.ids)
    counts = np.bincount(codes.indices.to_numpy(), minlength=len(codes.dictionary))
    _report(codes.dictionary, counts > 1, "repeated_vector", "once", given, faults)
    at = pc.fill_null(pc.index_in(wanted, value_set=given.ids), -1)
    found: np.ndarray = at.to_numpy().astype(np.int64)
    _report(wanted, found < 0, "missing_vector", "for every item", given, faults)
    if not ignore_extra:
        known = pc.is_in(given.ids, value_set=wanted).to_numpy(zero_copy_only=False)
        _report(given.ids, ~known, "unknown_vector", "for items of the source only", given, faults)
    return found


def _report(
    ids: pa.Array, at_fault: np.ndarray, code: str, rule: str, given: NamedVectors, faults: Faults
) -> None:
    at = np.flatnonzero(at_fault)
    if len(at):
        sample = ", ".join(excerpt(ids[int(row)].as_py()) for row in at[:5])
        more = f" and {len(at) - 5} more" if len(at) > 5 else ""
        remedy = f"a vector is given {rule}"
        faults.add(code, given.file, "its ids", f"{sample}{more}", remedy)
