"""Documents, queries and judgements put together: references resolved, splits and repeats settled.

Work on judgements is columnar: ids become row numbers batch by batch, and only those are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.sources.collection import (
    CASES_READ,
    DOCUMENT,
    FILES,
    LEFT_OUT,
    ORPHANS,
    QRELS_READ,
    QUERY,
    Collection,
)
from rag_assets.sources.faults import Faults
from rag_assets.sources.judgements import JudgedLines
from rag_assets.sources.options import SourceOptions
from rag_assets.sources.records import Origin
from rag_assets.sources.strict_json import excerpt


@dataclass(frozen=True)
class JudgedFile:
    """The judgements of one file; `split` is None where the source has no splits.

    A file of a split that was not chosen only tells which queries are judged there.
    """

    split: str | None
    shown: str
    batches: Iterable[JudgedLines]
    chosen: bool = True
    unit: str = "line"  # or "row": what its places count


@dataclass
class _Judged:
    """Judgements resolved so far, as columns in parts."""

    case_rows: list[np.ndarray] = field(default_factory=list)
    item_rows: list[np.ndarray] = field(default_factory=list)
    grades: list[np.ndarray] = field(default_factory=list)
    places: list[np.ndarray] = field(default_factory=list)
    files: list[JudgedFile] = field(default_factory=list)  # of each part
    orphans: list[pa.RecordBatch] = field(default_factory=list)


def assemble(
    documents: tuple[pa.Table, Origin],
    queries: tuple[pa.Table, pa.Table, Origin],
    judged_files: Sequence[JudgedFile],
    options: SourceOptions,
    faults: Faults,
) -> Collection:
    """The collection of documents (ITEMS_READ) and queries (ITEMS_READ, CASES_READ).

    `files` of the result is empty: the caller knows the files. Raises InputError with what
    `faults` holds and what is found here: repeated ids, a query id that is a document's, two
    grades for one pair, a query judged in two splits.
    """
    left_out = dict.fromkeys(LEFT_OUT, 0)
    items, origin = documents
    query_items, cases, query_origin = queries
    _refuse_repeats(items, items["item_id"], origin, "duplicate_document", faults)
    _refuse_repeats(query_items, cases["case_id"], query_origin, "duplicate_query", faults)
    _refuse_collisions(items, query_items, query_origin, faults)
    if options.blank_documents == "leave_out":
        items, left_out["blank_documents"] = _without(items, items["is_blank"])

    judged, split_no, elsewhere = _resolve(items, cases, judged_files, query_origin, faults)
    faults.raise_if_any()
    case_rows, item_rows, grades = _distinct(judged, items, cases, left_out, faults)
    faults.raise_if_any()

    kept = split_no >= 0
    idle = ~kept & ~elsewhere
    left_out["queries_of_other_splits"] = int((~kept & elsewhere).sum())
    if options.unjudged_queries == "leave_out":
        left_out["unjudged_queries"] = int(idle.sum())
    else:
        stated = cases["split"].is_valid().to_numpy()
        if options.splits:
            chosen = pc.is_in(cases["split"], pa.array(options.splits, pa.string())).to_numpy()
            left_out["queries_of_other_splits"] += int((idle & stated & ~chosen).sum())
            idle &= ~stated | chosen
        kept |= idle
    # A judgement decides a query's split; its own field counts only where nobody judged it.
    names = pa.array([*(file.split for file in judged_files), None], pa.string())
    by_judgement = names.take(pa.array(np.where(split_no >= 0, split_no, len(names) - 1)))
    splits = pc.if_else(pa.array(split_no >= 0), by_judgement, cases["split"].combine_chunks())
    at = CASES_READ.get_field_index("split")
    cases = cases.set_column(at, CASES_READ.field(at), splits)

    rows = pa.array(np.flatnonzero(kept))
    number = np.cumsum(kept) - 1
    orphans = pa.Table.from_batches(judged.orphans, ORPHANS)
    if options.orphan_judgements == "leave_out":
        left_out["orphan_judgements"], orphans = len(orphans), orphans.slice(0, 0)
    return Collection(
        items=pa.concat_tables([items, query_items.take(rows)]),
        cases=cases.take(rows),
        qrels=pa.table(
            [
                pa.array(number[case_rows].astype(np.int32)),
                pa.array(item_rows),
                pa.array(grades),
            ],
            schema=QRELS_READ,
        ),
        orphans=orphans,
        files=FILES.empty_table(),
        file_of={DOCUMENT: origin.file, QUERY: query_origin.file},
        left_out=left_out,
    )


def _refuse_repeats(
    items: pa.Table, ids: pa.ChunkedArray, origin: Origin, code: str, faults: Faults
) -> None:
    codes = pc.dictionary_encode(ids.combine_chunks()).indices.to_numpy()
    first = np.full(len(codes), -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    places = items["place"].to_numpy()
    for row in np.flatnonzero(first[codes] != np.arange(len(codes)))[: faults.max_problems + 1]:
        earlier = f"as in {origin.unit} {places[first[codes[row]]]}"
        found = f"{excerpt(ids[int(row)].as_py())}, {earlier}"
        place = f"{origin.unit} {places[row]}"
        faults.add(code, origin.file, place, found, "an id names one record")


def _refuse_collisions(
    documents: pa.Table, query_items: pa.Table, origin: Origin, faults: Faults
) -> None:
    known = documents["item_id"].combine_chunks()
    taken = pc.is_in(query_items["item_id"], known).to_numpy()
    for row in np.flatnonzero(taken)[: faults.max_problems + 1]:
        found = f"the item id {excerpt(query_items['item_id'][int(row)].as_py())}, a document's too"
        place = f"{origin.unit} {query_items['place'][int(row)].as_py()}"
        remedy = "items of both roles share one set of ids; state another query_prefix"
        faults.add("item_id_taken", origin.file, place, found, remedy)


def _without(items: pa.Table, flagged: pa.ChunkedArray) -> tuple[pa.Table, int]:
    kept = items.filter(pc.invert(flagged))
    return kept, len(items) - len(kept)


def _resolve(
    items: pa.Table,
    cases: pa.Table,
    files: Sequence[JudgedFile],
    origin: Origin,
    faults: Faults,
) -> tuple[_Judged, np.ndarray, np.ndarray]:
    """Judgements by row; each case's position in `files`, int64[n_cases], -1 without one; and
    bool[n_cases]: judged in a split that was not chosen."""
    document_ids, case_ids = items["item_id"].combine_chunks(), cases["case_id"].combine_chunks()
    judged = _Judged()
    split_no = np.full(len(cases), -1)
    elsewhere = np.zeros(len(cases), bool)
    for number, file in enumerate(files):
        judged_here = np.zeros(len(cases), bool)
        for batch in file.batches:
            case_rows = _rows_of(batch.query_ids, case_ids)
            judged_here[case_rows[case_rows >= 0]] = True
            if file.chosen:
                item_rows = _rows_of(batch.document_ids, document_ids)
                _keep(judged, file, batch, case_rows, item_rows)
        if not file.chosen:
            elsewhere |= judged_here
            continue
        for row in np.flatnonzero(judged_here & (split_no >= 0))[: faults.max_problems + 1]:
            case_id = excerpt(case_ids[int(row)].as_py())
            found = f"query {case_id}, which {files[split_no[row]].shown} judges too"
            remedy = "a query belongs to one split; choose one of the splits"
            faults.add("query_in_two_splits", file.shown, origin.file, found, remedy)
        split_no[judged_here] = number
    return judged, split_no, elsewhere


def _keep(
    judged: _Judged,
    file: JudgedFile,
    batch: JudgedLines,
    case_rows: np.ndarray,
    item_rows: np.ndarray,
) -> None:
    lost = np.flatnonzero((case_rows < 0) | (item_rows < 0))
    if len(lost):
        at = pa.array(lost)
        unknown = np.select(
            [(case_rows[lost] < 0) & (item_rows[lost] < 0), case_rows[lost] < 0],
            ["both", "query"],
            "document",
        )
        columns = [
            pa.array([file.shown] * len(lost)),
            pa.array(batch.places[lost]),
            batch.query_ids.take(at),
            batch.document_ids.take(at),
            pa.array(unknown.tolist(), pa.string()),
        ]
        judged.orphans.append(pa.RecordBatch.from_arrays(columns, schema=ORPHANS))
    sound = (case_rows >= 0) & (item_rows >= 0)
    judged.case_rows.append(case_rows[sound])
    judged.item_rows.append(item_rows[sound])
    judged.grades.append(batch.grades[sound])
    judged.places.append(batch.places[sound])
    judged.files.append(file)


def _rows_of(ids: pa.Array, known: pa.Array) -> np.ndarray:
    """int32[n]: position of each id among the known ones, -1 for others."""
    rows: np.ndarray = pc.fill_null(pc.index_in(ids, value_set=known), -1).to_numpy()
    return rows


def _distinct(
    judged: _Judged, items: pa.Table, cases: pa.Table, left_out: dict[str, int], faults: Faults
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of the judgements, each pair once: int32[n], int32[n], int8[n]."""
    case_rows = np.concatenate([*judged.case_rows, np.zeros(0, np.int32)])
    item_rows = np.concatenate([*judged.item_rows, np.zeros(0, np.int32)])
    grades = np.concatenate([*judged.grades, np.zeros(0, np.int8)])
    pairs = case_rows.astype(np.int64) * max(1, len(items)) + item_rows
    order = np.argsort(pairs, kind="stable")
    again = np.flatnonzero(pairs[order[1:]] == pairs[order[:-1]]) + 1
    if not len(again):
        return case_rows, item_rows, grades
    places = np.concatenate(judged.places)
    parts = np.cumsum([len(part) for part in judged.case_rows])
    later, earlier = order[again], order[again - 1]
    conflicts = np.flatnonzero(grades[earlier] != grades[later])
    for pair in conflicts[np.argsort(later[conflicts])][: faults.max_problems + 1]:
        one, two = earlier[pair], later[pair]
        case_id = cases["case_id"][int(case_rows[two])].as_py()
        item_id = items["item_id"][int(item_rows[two])].as_py()
        file = judged.files[int(np.searchsorted(parts, two, side="right"))]
        found = (
            f"query {excerpt(case_id)}, document {excerpt(item_id)} with grade {grades[two]}, "
            f"in {file.unit} {places[one]} with grade {grades[one]}"
        )
        remedy = "a document has one grade per query"
        place = f"{file.unit} {places[two]}"
        faults.add("conflicting_judgements", file.shown, place, found, remedy)
    left_out["repeated_judgements"] = len(later)
    kept = np.ones(len(pairs), bool)
    kept[later] = False
    return case_rows[kept], item_rows[kept], grades[kept]
