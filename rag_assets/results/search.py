"""Run query cases over one embedding space, each with its own vectors and access rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from rag_assets.canonical.corpus import RESULTS, Corpus
from rag_assets.embeddings.space import EmbeddedSpace, declared_embeddings
from rag_assets.errors import UsageError
from rag_assets.indexes.acl import document_access
from rag_assets.indexes.exact import ExactIndex, positive_k, top_k

_LARGEST_RANK = np.iinfo(np.int16).max


class Index(Protocol):
    """What searches a space's documents; see `ExactIndex.search` for shapes and padding."""

    def search(
        self,
        queries: np.ndarray,
        k: int,
        eligible: np.ndarray | None = None,
        *,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]: ...


def search_cases(
    space: EmbeddedSpace,
    corpus_items: pa.Table,
    cases: pa.Table,
    k: int,
    *,
    index: Index | None = None,
    among: np.ndarray | None = None,
    threads: int | None = None,
) -> pa.Table:
    """The best `k` documents of each case, as RESULTS, ordered by case_no and rank.

    `corpus_items` follows ITEMS, `cases` CASES. `index` is the exact one of this space unless
    given. `among: int[*]` restricts the candidates to those item numbers. Cases that may see the
    same documents are searched together. Raises UsageError for a k that is not a positive integer
    and for a case whose query item is not a query of the space.
    """
    k = positive_k(k)
    index = ExactIndex.build(space) if index is None else index
    item_no = space.document_item_no
    k = min(k, max(len(item_no), 1))
    if k > _LARGEST_RANK:
        raise UsageError(f"k is {k}; results hold at most {_LARGEST_RANK} documents of a case")
    access = document_access(space, corpus_items)
    wanted = None if among is None else np.isin(item_no, among)
    query_rows = _query_rows(space, cases)

    together: dict[bytes, tuple[np.ndarray, list[int]]] = {}
    for place, groups in enumerate(cases["subject_groups"].to_pylist()):
        allowed = access.allowed_pairs(groups)
        together.setdefault(allowed.tobytes(), (allowed, []))[1].append(place)

    found: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    case_no = cases["case_no"].to_numpy()
    for allowed, places in together.values():
        eligible = access.rows(allowed)
        if wanted is not None:
            eligible = eligible[wanted[eligible]]
        if eligible.size == 0:
            continue
        queries = space.vectors[query_rows[places]]
        rows, scores = index.search(queries, k, eligible, threads=threads)
        case_at, rank_at = np.nonzero(rows >= 0)
        found.append(
            (
                case_no[np.asarray(places)[case_at]],
                rank_at + 1,
                item_no[rows[case_at, rank_at]],
                scores[case_at, rank_at],
            )
        )
    if not found:
        return RESULTS.empty_table()
    columns = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    arrays = [
        pa.array(column[order], type=field.type)
        for column, field in zip(columns, RESULTS, strict=True)
    ]
    return pa.table(arrays, schema=RESULTS)


def exact_search(
    corpus: Corpus, space_id: str, query_item_id: str, subject_groups: Sequence[str], k: int
) -> list[tuple[str, float]]:
    """The best `k` (item_id, score) that a subject may see, for one query item of one space.

    Raises UsageError for an unknown space, an unknown item or one that is not a query there, a k
    that is not a positive integer, and groups that are repeated or not a sequence of names.
    """
    k = positive_k(k)
    groups = _distinct_groups(subject_groups)
    known = [contract.space_id for contract in corpus.contracts]
    if space_id not in known:
        raise UsageError(f"no space {space_id!r}; the spaces are {', '.join(known)}")
    space = declared_embeddings(corpus, space_id)
    item_ids = space.items["item_id"].to_pylist()
    if query_item_id not in item_ids:
        raise UsageError(f"space {space_id!r} has no item {query_item_id!r}")
    at = item_ids.index(query_item_id)
    role = space.items["role"][at].as_py()
    if role != space.contract.query_role:
        raise UsageError(
            f"item {query_item_id!r} has role {role!r} in space {space_id!r}; "
            f"only items with role {space.contract.query_role!r} can be searched with"
        )
    access = document_access(space, corpus.items)
    eligible = access.rows(access.allowed_pairs(groups))
    if eligible.size == 0:
        return []
    rows, scores = top_k(
        space.documents,
        space.vectors[at : at + 1],
        min(k, len(eligible)),
        space.contract.metric,
        eligible=eligible,
        threads=1,
    )
    return [(item_ids[row], float(score)) for row, score in zip(rows[0], scores[0], strict=True)]


def _query_rows(space: EmbeddedSpace, cases: pa.Table) -> np.ndarray:
    """Rows, int64[n_cases], of the cases' query items in the space's vectors."""
    first = space.document_count
    row_of = {
        number: first + place
        for place, number in enumerate(space.items["item_no"][first:].to_pylist())
    }
    rows = np.empty(len(cases), dtype=np.int64)
    for place, number in enumerate(cases["query_item_no"].to_pylist()):
        if number not in row_of:
            raise UsageError(
                f"case {cases['case_id'][place].as_py()!r}: its query item "
                f"{cases['query_item_id'][place].as_py()!r} is not a query of space "
                f"{space.contract.space_id!r}"
            )
        rows[place] = row_of[number]
    return rows


def _distinct_groups(groups: Sequence[str]) -> list[str]:
    if isinstance(groups, str) or not isinstance(groups, Sequence | set | frozenset):
        raise UsageError(f"subject groups are {groups!r}; they must be a list of group names")
    names = list(groups)
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"subject groups are {names!r}; each must be a group name")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UsageError(f"subject groups repeat {', '.join(map(repr, repeated))}")
    return names
