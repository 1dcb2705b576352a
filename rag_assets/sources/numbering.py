"""A collection numbered and tied to spaces: a Corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import CASES, ITEMS, QRELS, SPACE_ITEMS, Corpus
from rag_assets.errors import UsageError
from rag_assets.sources.collection import DOCUMENT, QUERY, Collection
from rag_assets.sources.faults import Faults
from rag_assets.sources.strict_json import excerpt
from rag_assets.sources.vector_checks import refuse_unsound

_BLOCK = 65_536


def corpus_of(collection: Collection, contracts: Sequence[SpaceContract]) -> Corpus:
    """Every space holds all items. Vectors are those that the source holds, if any.

    Raises UsageError for contracts that do not fit (roles other than document and query, no or
    repeated space ids, a source with vectors and other than one space, another metric), and
    InputError for what a corpus cannot hold: orphan judgements, blank texts, no documents or
    queries; and for vectors that break the contract.
    """
    _check_contracts(contracts, collection)
    _check_content(collection)
    ids = collection.items["item_id"].combine_chunks()
    # Arrow orders strings by their UTF-8 bytes, which is the order of code points.
    order = pc.sort_indices(ids).to_numpy().astype(np.int64)
    item_no = np.empty(len(order), np.int32)
    item_no[order] = np.arange(len(order), dtype=np.int32)
    count = collection.document_count
    by_role = np.concatenate([order[order < count], order[order >= count]])
    return Corpus(
        contracts=tuple(contracts),
        items=_items(collection, order),
        space_items=_space_items(collection, by_role, item_no, len(contracts)),
        cases=_cases(collection, item_no),
        qrels=pa.table(
            [
                collection.qrels["case_row"],
                pa.array(item_no[collection.qrels["item_row"].to_numpy()]),
                collection.qrels["grade"],
            ],
            schema=QRELS,
        ),
        vectors=_vectors(collection, contracts, by_role),
    )


def _check_contracts(contracts: Sequence[SpaceContract], collection: Collection) -> None:
    names = [contract.space_id for contract in contracts]
    if not names or len(set(names)) != len(names):
        raise UsageError(f"spaces are {names}; one or more are needed, each named once")
    for contract in contracts:
        for field, role in (("document_role", DOCUMENT), ("query_role", QUERY)):
            if getattr(contract, field) != role:
                raise UsageError(
                    f"space {contract.space_id!r}: {field} is {getattr(contract, field)!r}; items "
                    f"of this source have the roles {DOCUMENT} and {QUERY}, so it must be {role!r}"
                )
    given = collection.vectors
    if given is not None:
        if len(names) != 1:
            raise UsageError(
                f"{given.document_file} holds the vectors of one space, but {len(names)} are "
                f"declared: {', '.join(names)}"
            )
        if given.metric not in (None, contracts[0].metric):
            raise UsageError(
                f"{given.document_file} is about {given.metric}, but space {names[0]!r} has the "
                f"metric {contracts[0].metric}"
            )


def _check_content(collection: Collection) -> None:
    faults = Faults()
    blank = np.flatnonzero(collection.items["is_blank"].to_numpy())
    for row in blank[: faults.max_problems + 1]:
        role, item_id, place = (
            collection.items[name][int(row)].as_py() for name in ("role", "item_id", "place")
        )
        remedy = "a text has visible characters"
        if role == DOCUMENT:
            remedy += "; blank_documents: leave_out leaves such documents out"
        found = f"a blank text of {excerpt(item_id)}"
        faults.add("blank_text", collection.file_of[role], f"record {place}", found, remedy)
    for orphan in collection.orphans.slice(0, faults.max_problems + 1).to_pylist():
        found = f"query {excerpt(orphan['query_id'])}, document {excerpt(orphan['document_id'])}"
        unknown = "both" if orphan["unknown"] == "both" else f"the {orphan['unknown']}"
        found += f": {unknown} unknown"
        remedy = "judge what the source holds; orphan_judgements: leave_out leaves others out"
        place = f"line {orphan['place']}"
        faults.add("orphan_judgement", orphan["file"], place, found, remedy)
    for role, number in ((DOCUMENT, collection.document_count), (QUERY, len(collection.cases))):
        if not number:
            remedy = f"at least one {role} is needed"
            faults.add("no_items", collection.file_of[role], "whole file", f"no {role}", remedy)
    faults.raise_if_any()


def _items(collection: Collection, order: np.ndarray) -> pa.Table:
    small = collection.items.select([n for n in ITEMS.names if n not in ("item_no", "text")])
    taken = small.take(pa.array(order))
    texts = collection.items["text"].combine_chunks()
    # In blocks: the texts together may not fit 32-bit offsets.
    blocks = [
        texts.take(pa.array(order[start : start + _BLOCK])).cast(pa.string())
        for start in range(0, len(order), _BLOCK)
    ]
    columns = {name: taken[name] for name in small.column_names}
    columns["text"] = pa.chunked_array(blocks, pa.string())
    columns["item_no"] = pa.chunked_array([np.arange(len(order), dtype=np.int32)])
    return pa.table([columns[name] for name in ITEMS.names], schema=ITEMS)


def _space_items(
    collection: Collection, by_role: np.ndarray, item_no: np.ndarray, spaces: int
) -> pa.Table:
    names = [name for name in SPACE_ITEMS.names if name not in ("space_no", "item_no")]
    taken = collection.items.select(names).take(pa.array(by_role))
    columns = {name: taken[name] for name in names}
    columns["item_no"] = pa.chunked_array([item_no[by_role]])
    tables = []
    for space_no in range(spaces):
        columns["space_no"] = pa.chunked_array([np.full(len(by_role), space_no, np.int16)])
        tables.append(pa.table([columns[n] for n in SPACE_ITEMS.names], schema=SPACE_ITEMS))
    return pa.concat_tables(tables)


def _cases(collection: Collection, item_no: np.ndarray) -> pa.Table:
    columns = {name: collection.cases[name] for name in collection.cases.column_names}
    count = len(collection.cases)
    columns["case_no"] = pa.array(np.arange(count, dtype=np.int32))
    columns["query_item_no"] = pa.array(item_no[collection.document_count :])
    return pa.table([columns[name] for name in CASES.names], schema=CASES)


def _vectors(
    collection: Collection, contracts: Sequence[SpaceContract], by_role: np.ndarray
) -> dict[str, np.ndarray]:
    """The source's own vectors in the row order of space_items."""
    given = collection.vectors
    if given is None:
        return {}
    contract = contracts[0]
    ids = collection.items["item_id"]
    count = collection.document_count
    refuse_unsound(given.documents, contract, given.document_file, lambda row: ids[row].as_py())
    refuse_unsound(given.queries, contract, given.query_file, lambda row: ids[count + row].as_py())
    matrix = np.empty((len(by_role), contract.dimension), contract.numpy_dtype)
    matrix[:count] = given.documents[by_role[:count]]
    matrix[count:] = given.queries[by_role[count:] - count]
    matrix.setflags(write=False)
    return {contract.space_id: matrix}
