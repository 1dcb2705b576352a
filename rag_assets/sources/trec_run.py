"""TREC run files: what a search outside of rag-assets returned, as results of our cases.

    query id, "Q0", document id, rank, score, tag      with any white space between

As in trec_eval the rank column is not used: documents are ranked by score descending. Equal scores
are ranked by item id ascending, as everywhere here. A line that begins with "#" is a comment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.corpus import Corpus
from rag_assets.indexes.acl import number_lists
from rag_assets.results.search import SCORED
from rag_assets.sources.faults import Faults, refuse
from rag_assets.sources.judgements import split_columns, white_space_split, without_comments
from rag_assets.sources.strict_json import WHOLE_FILE, excerpt
from rag_assets.sources.text_lines import TextFile

MAX_RANK = int(np.iinfo(np.int16).max)
_INTEGER = r"^-?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class TrecRun:
    """A run. `results` follows SCORED, by case and rank; exact_score is NULL throughout.

    `tag` is the file's, a candidate for the index name. `reordered`: rows whose place by score is
    not the rank that the file gives them, counted from its own first rank. `silent_cases`: cases of
    the corpus of which the run says nothing; with judgements they score 0.
    """

    tag: str
    results: pa.Table
    reordered: int
    silent_cases: int


@dataclass(frozen=True)
class _Rows:
    """Sound lines of a run: int64[n] but for `score: float64[n]`.

    A corpus numbers cases and items by their rows, so a row is a number.
    """

    case_no: np.ndarray
    item_no: np.ndarray
    score: np.ndarray
    rank: np.ndarray
    places: np.ndarray
    tags: pa.Array


def read_trec_run(path: str | Path, corpus: Corpus, shown: str | None = None) -> TrecRun:
    """A run over the cases and documents of a corpus.

    Raises InputError for lines of another form, a score that is not a finite number, ids that the
    corpus does not hold, a document that is twice in a case or that the case's subject may not
    read (a leak), several tags, and a case with more than 32,767 documents.
    """
    text = TextFile(Path(path), shown or os.fspath(path))
    faults = Faults()
    ids = corpus.cases["case_id"].combine_chunks(), _document_ids(corpus)
    parts = []
    for lines in text.batches():
        places = np.arange(lines.first, lines.first + len(lines.text))
        rows, places = without_comments(lines.text, places, text, 6, _NUMBER, 4, faults)
        wanted = "query id, Q0, document id, rank, score, tag"
        columns, places = split_columns(
            white_space_split(rows), rows, places, 6, wanted, text.shown, faults
        )
        parts.append(_sound(columns, places, ids, text.shown, faults))
        if faults.full:
            break
    faults.raise_if_any()
    if not parts or not sum(len(part.places) for part in parts):
        refuse("empty_file", text.shown, WHOLE_FILE, "no result", "a run has at least one line")
    found = _joined(parts)
    _refuse_leaks(found, corpus, text.shown, faults)
    tag = _one_tag(found.tags, text.shown)
    return _ranked(found, corpus, tag, text.shown, faults)


def _document_ids(corpus: Corpus) -> pa.StringArray:
    """The id of each item that is a document, else null."""
    roles = pa.array(sorted({contract.document_role for contract in corpus.contracts}))
    is_document = pc.is_in(corpus.items["role"], value_set=roles)
    missing = pa.scalar(None, pa.string())
    return pc.if_else(is_document, corpus.items["item_id"], missing).combine_chunks()


def _sound(
    columns: list[pa.Array],
    places: np.ndarray,
    ids: tuple[pa.Array, pa.Array],
    file: str,
    faults: Faults,
) -> _Rows:
    queries, _, documents, ranks, scores, tags = columns
    fine = np.ones(len(places), bool)

    def refuse_rows(sound: np.ndarray, code: str, values: pa.Array, remedy: str) -> None:
        for row in np.flatnonzero(~sound)[: faults.max_problems + 1]:
            place = f"line {places[row]}"
            faults.add(code, file, place, excerpt(values[int(row)].as_py()), remedy)
        np.logical_and(fine, sound, out=fine)

    case_no = _rows_of(queries, ids[0])
    refuse_rows(case_no >= 0, "unknown_query", queries, "a case id of the corpus is needed")
    item_row = _rows_of(documents, ids[1])
    refuse_rows(item_row >= 0, "unknown_document", documents, "a document of the corpus is needed")
    is_rank = pc.match_substring_regex(ranks, r"^[0-9]{1,9}$").to_numpy(zero_copy_only=False)
    refuse_rows(is_rank, "bad_rank", ranks, "a rank is a whole number")
    is_number = pc.match_substring_regex(scores, _NUMBER).to_numpy(zero_copy_only=False)
    score = pc.if_else(pa.array(is_number), scores, "nan").cast(pa.float64()).to_numpy()
    refuse_rows(np.isfinite(score), "bad_score", scores, "a score is a finite number")
    at = np.flatnonzero(fine)
    rank = ranks.take(pa.array(at)).cast(pa.int64()).to_numpy()
    return _Rows(case_no[at], item_row[at], score[at], rank, places[at], tags.take(pa.array(at)))


def _rows_of(ids: pa.Array, known: pa.Array) -> np.ndarray:
    rows: np.ndarray = pc.fill_null(pc.index_in(ids, value_set=known), -1).to_numpy()
    return rows.astype(np.int64)


def _joined(parts: list[_Rows]) -> _Rows:
    return _Rows(
        case_no=np.concatenate([part.case_no for part in parts]),
        item_no=np.concatenate([part.item_no for part in parts]),
        score=np.concatenate([part.score for part in parts]),
        rank=np.concatenate([part.rank for part in parts]),
        places=np.concatenate([part.places for part in parts]),
        tags=pa.concat_arrays([part.tags for part in parts]),
    )


def _refuse_leaks(rows: _Rows, corpus: Corpus, file: str, faults: Faults) -> None:
    """Every row by its distinct pair of the subject's groups and the document's access list."""
    group_no, groups = number_lists(corpus.cases["subject_groups"])
    acl_no, acls = number_lists(corpus.items["acl"])
    subject, access = group_no[rows.case_no], acl_no[rows.item_no]
    codes, inverse = np.unique(subject * (len(acls) + 1) + access, return_inverse=True)
    hidden = np.array(
        [
            code % (len(acls) + 1) >= len(acls)
            or groups[code // (len(acls) + 1)].isdisjoint(acls[code % (len(acls) + 1)])
            for code in codes
        ],
        bool,
    )[inverse]
    for row in np.flatnonzero(hidden)[: faults.max_problems + 1]:
        case_id = corpus.cases["case_id"][int(rows.case_no[row])].as_py()
        item_id = corpus.items["item_id"][int(rows.item_no[row])].as_py()
        found = f"document {excerpt(item_id)}, which the subject of {excerpt(case_id)} may not read"
        remedy = "a run that shows it leaks; the search must filter by access"
        faults.add("leaked_document", file, f"line {rows.places[row]}", found, remedy)
    faults.raise_if_any()


def _one_tag(tags: pa.Array, file: str) -> str:
    names: list[str] = pc.unique(tags).to_pylist()
    if len(names) > 1:
        found = ", ".join(excerpt(name) for name in names[:5])
        refuse("several_tags", file, WHOLE_FILE, found, "a file holds one run: split it by tag")
    return names[0]


def _ranked(rows: _Rows, corpus: Corpus, tag: str, file: str, faults: Faults) -> TrecRun:
    order = np.lexsort((rows.item_no, -rows.score, rows.case_no))
    case_no, item_no = rows.case_no[order], rows.item_no[order]
    first = np.searchsorted(case_no, case_no, side="left")
    rank = np.arange(len(order)) - first
    pairs = np.lexsort((rows.places, rows.item_no, rows.case_no))
    again = (np.diff(rows.case_no[pairs]) == 0) & (np.diff(rows.item_no[pairs]) == 0)
    for row in pairs[np.flatnonzero(again) + 1][: faults.max_problems + 1]:
        item_id = corpus.items["item_id"][int(rows.item_no[row])].as_py()
        found = f"document {excerpt(item_id)} again"
        remedy = "a case holds each document once"
        faults.add("repeated_document", file, f"line {rows.places[row]}", found, remedy)
    faults.raise_if_any()
    if rank.max() >= MAX_RANK:
        case_id = corpus.cases["case_id"][int(case_no[rank.argmax()])].as_py()
        found = f"{int(rank.max()) + 1} documents of {excerpt(case_id)}"
        refuse("run_too_deep", file, WHOLE_FILE, found, f"at most {MAX_RANK} for each case")
    stated = rows.rank[order]
    lowest = np.minimum.reduceat(stated, np.unique(first)) if len(first) else stated
    start = np.repeat(lowest, np.diff(np.append(np.unique(first), len(first))))
    columns = [
        pa.array(case_no.astype(np.int32)),
        pa.array((rank + 1).astype(np.int16)),
        pa.array(item_no.astype(np.int32)),
        pa.array(rows.score[order]),
        pa.nulls(len(order), pa.float64()),
    ]
    return TrecRun(
        tag=tag,
        results=pa.table(columns, schema=SCORED),
        reordered=int((stated - start != rank).sum()),
        silent_cases=len(corpus.cases) - len(np.unique(case_no)),
    )
