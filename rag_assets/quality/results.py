"""Validation of search results, the leak check among it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.quality.columns import integers, labels, row_of_number, rows_at, taken
from rag_assets.quality.embeddings import vector_scalars
from rag_assets.quality.readability import (
    SetColumn,
    hidden_pairs,
    readable_counts,
    set_column,
)
from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import rules
from rag_assets.quality.validation import Frame, validate

# Rankings are by score on a grid whose step is at most this part of the largest attainable score,
# so that scores may rise by less than a step from one rank to the next.
RISE_TOLERANCE = 2.0**-29


@dataclass(frozen=True)
class _Joined:
    """Results in order of case and rank, joined with what they refer to.

    `*_rows: int64[n]` point into cases, canonical items and the space's items; -1 is unknown.
    """

    results: pa.Table
    case_rows: np.ndarray
    canonical_rows: np.ndarray
    space_rows: np.ndarray
    groups: SetColumn
    canonical_acl: SetColumn
    space_acl: SetColumn


def check_results(
    results: pa.Table,
    space: EmbeddedSpace,
    corpus: Corpus,
    k: int,
    *,
    complete: bool = True,
    among: np.ndarray | None = None,
) -> CheckReport:
    """Blocking check `result_validation` of RESULTS rows of one space and index.

    `k`: how many results a case may have. `complete`: every case has min(k, readable documents)
    results, which exact search promises and approximate indexes do not. `among: int32[m]`: the
    item numbers that the search was limited to, if it was.
    """
    joined = _join(results, space, corpus)
    counts = np.bincount(joined.case_rows[joined.case_rows >= 0], minlength=len(corpus.cases))
    eligible = _eligible_counts(joined, space, corpus, among)
    hidden_canonical, hidden_space = _hidden(joined)
    leaked = hidden_canonical | hidden_space
    hidden = (hidden_canonical, hidden_space)
    frames = (
        _result_frame(joined, space, corpus, among, hidden, least=int((eligible > 0).any())),
        _case_frame(joined, corpus, k, counts, eligible, complete),
    )
    return validate(
        "result_validation",
        frames,
        {
            "results": float(len(results)),
            "leaked_pairs": float(leaked.sum()),
            "cases_without_results": float((counts == 0).sum()),
            "short_cases": float((counts < np.minimum(k, eligible)).sum()),
        },
    )


def _join(results: pa.Table, space: EmbeddedSpace, corpus: Corpus) -> _Joined:
    case_no, rank = integers(results["case_no"]), integers(results["rank"])
    if not _in_order(case_no, rank):
        order = np.lexsort((rank, case_no))
        results = results.take(pa.array(order))
        case_no = case_no[order]
    item_no = integers(results["item_no"])
    count = len(corpus.items)
    return _Joined(
        results=results,
        case_rows=rows_at(
            row_of_number(integers(corpus.cases["case_no"]), len(corpus.cases)), case_no
        ),
        canonical_rows=rows_at(row_of_number(integers(corpus.items["item_no"]), count), item_no),
        space_rows=rows_at(row_of_number(integers(space.items["item_no"]), count), item_no),
        groups=set_column(corpus.cases["subject_groups"]),
        canonical_acl=set_column(corpus.items["acl"]),
        space_acl=set_column(space.items["acl"]),
    )


def _in_order(case_no: np.ndarray, rank: np.ndarray) -> bool:
    step = np.diff(case_no)
    return bool(((step > 0) | ((step == 0) & (np.diff(rank) >= 0))).all())


def _hidden(joined: _Joined) -> tuple[np.ndarray, np.ndarray]:
    """bool[n] twice: results hidden from their subject by the canonical and by the space's list.

    What is unknown to either is readable by nobody.
    """
    subjects = joined.groups.at(joined.case_rows)
    return (
        hidden_pairs(subjects, joined.canonical_acl.at(joined.canonical_rows)),
        hidden_pairs(subjects, joined.space_acl.at(joined.space_rows)),
    )


def _eligible_counts(
    joined: _Joined, space: EmbeddedSpace, corpus: Corpus, among: np.ndarray | None
) -> np.ndarray:
    """int64[n_cases]: documents of the space that each case's subject may read."""
    roles = space.items["role"].to_pandas().to_numpy()
    numbers = integers(space.items["item_no"])
    wanted = roles == space.contract.document_role
    if among is not None:
        wanted &= np.isin(numbers, among)
    documents = np.flatnonzero(wanted)
    canonical = rows_at(
        row_of_number(integers(corpus.items["item_no"]), len(corpus.items)), numbers[documents]
    )
    return readable_counts(
        joined.groups, joined.canonical_acl.at(canonical), joined.space_acl.at(documents)
    )


def _result_frame(
    joined: _Joined,
    space: EmbeddedSpace,
    corpus: Corpus,
    among: np.ndarray | None,
    hidden: tuple[np.ndarray, np.ndarray],
    least: int,
) -> Frame:
    results = joined.results
    case_no, rank = integers(results["case_no"]), integers(results["rank"])
    first = np.r_[True, case_no[1:] != case_no[:-1]][: len(case_no)]
    rows = np.arange(len(case_no))
    expected_rank = rows - np.maximum.accumulate(np.where(first, rows, 0)) + 1
    score = results["score"].to_numpy()
    with np.errstate(invalid="ignore"):
        rise = np.where(first, 0.0, score - np.r_[0.0, score[:-1]][: len(score)])
        rise /= _rise_bounds(joined, space, corpus)
    roles = taken(space.items["role"], np.arange(len(space.items))).to_pandas()
    kinds = pd.Categorical(roles)
    data = pd.DataFrame(
        {
            "case_no": results["case_no"].to_pandas(),
            "case_known": joined.case_rows >= 0,
            "rank": results["rank"].to_pandas(),
            "rank_gap": (rank - expected_rank).astype(np.int32),
            "item_no": results["item_no"].to_pandas(),
            "role_in_space": pd.Categorical.from_codes(
                np.append(kinds.codes, -1)[joined.space_rows], dtype=kinds.dtype
            ),
            "score": score,
            "score_rise": rise,
            "hidden_by_canonical_acl": hidden[0],
            "hidden_by_space_acl": hidden[1],
        }
    )
    demanded = rules(
        "results",
        least=least,
        document_role=space.contract.document_role,
        lowest_float=-sys.float_info.max,
        largest_float=sys.float_info.max,
    )
    if among is not None:
        data["among_limited"] = np.isin(integers(results["item_no"]), among)
        demanded += rules("results of a limited search")
    case_ids = labels(taken(corpus.cases["case_id"], joined.case_rows))
    item_ids = labels(taken(corpus.items["item_id"], joined.canonical_rows))
    return Frame("results", data, lambda row: f"case {case_ids(row)}: {item_ids(row)}", demanded)


def _rise_bounds(joined: _Joined, space: EmbeddedSpace, corpus: Corpus) -> np.ndarray:
    """float64[n]: by how much the score of each result may exceed that of the rank before it.

    RISE_TOLERANCE of the largest magnitude that a score of its case could reach: 1 for cosine,
    |q| max|x| for dot, |q| + max|x| for euclidean.
    """
    if space.contract.metric == "cosine":
        return np.full(len(joined.case_rows), RISE_TOLERANCE)
    norms, _ = vector_scalars(space.vectors, len(space.items))
    norms = np.nan_to_num(norms)
    numbers = row_of_number(integers(space.items["item_no"]), len(corpus.items))
    query_rows = rows_at(numbers, integers(corpus.cases["query_item_no"]))
    query_norms = np.append(np.append(norms, 0.0)[query_rows], 0.0)
    longest = norms.max(initial=0.0)
    dot = space.contract.metric == "dot"
    largest = query_norms * longest if dot else query_norms + longest
    bounds: np.ndarray = (np.where(largest > 0, largest, 1.0) * RISE_TOLERANCE)[joined.case_rows]
    return bounds


def _case_frame(
    joined: _Joined,
    corpus: Corpus,
    k: int,
    counts: np.ndarray,
    eligible: np.ndarray,
    complete: bool,
) -> Frame:
    groupless = np.array([not groups for groups in joined.groups.sets], dtype=bool)
    data = pd.DataFrame(
        {
            "result_count": counts,
            "results_without_groups": np.where(groupless[joined.groups.codes], counts, 0),
            "missing_results": np.maximum(np.minimum(k, eligible) - counts, 0),
        }
    )
    demanded = rules("cases searched", k=k)
    if complete:
        demanded += rules("cases searched exactly")
    return Frame("cases", data, labels(corpus.cases["case_id"]), demanded)
