"""Run query cases over one embedding space, each with its own vectors and access rights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rag_assets.canonical.contracts import SpaceContract
from rag_assets.canonical.corpus import RESULTS, Corpus
from rag_assets.embeddings.isolation import check_same_space
from rag_assets.embeddings.space import EmbeddedSpace, declared_embeddings
from rag_assets.errors import UsageError
from rag_assets.indexes.acl import document_access
from rag_assets.indexes.exact import ExactIndex, positive_k, top_k
from rag_assets.indexes.ranking import grid_steps, norms, pair_scores

_LARGEST_RANK = np.iinfo(np.int16).max


# What a search did for each case. `path`: "empty" (nothing to see), "exact" (all eligible documents
# scored) or "index"; `nprobe` only for inverted lists; `grid_step` is the ranking grid's.
SEARCHES = pa.schema(
    [
        ("case_no", pa.int32()),
        ("eligible_count", pa.int32()),
        ("nprobe", pa.int32()),
        ("path", pa.string()),
        ("grid_step", pa.float64()),
    ]
)
# Results with the exact score of each returned document beside the one that the index reported.
SCORED = pa.schema([*RESULTS, ("exact_score", pa.float64())])


class Hits(Protocol):
    """What `search_detailed` of an approximate index returns; nprobe is 0 where none applies."""

    @property
    def rows(self) -> np.ndarray: ...
    @property
    def scores(self) -> np.ndarray: ...
    @property
    def nprobe(self) -> np.ndarray: ...
    @property
    def path(self) -> str: ...


class ApproximateIndex(Protocol):
    """What searches a space's documents; see `ExactIndex.search` for shapes and padding."""

    @property
    def contract(self) -> SpaceContract: ...

    def search_detailed(
        self,
        queries: np.ndarray,
        k: int,
        eligible: np.ndarray | None = None,
        *,
        threads: int | None = None,
    ) -> Hits: ...


@dataclass(frozen=True)
class CandidateSet:
    """Cases that may see the same documents: `places: int64[*]` into the cases, and `eligible:
    int64[*]`, ascending rows of the space's documents."""

    places: np.ndarray
    eligible: np.ndarray


def candidate_sets(
    space: EmbeddedSpace, corpus_items: pa.Table, cases: pa.Table, among: np.ndarray | None = None
) -> list[CandidateSet]:
    """The cases grouped by what they may see; `among: int[*]` restricts to those item numbers."""
    access = document_access(space, corpus_items)
    wanted = None if among is None else np.isin(space.document_item_no, among)
    together: dict[bytes, tuple[np.ndarray, list[int]]] = {}
    for place, groups in enumerate(cases["subject_groups"].to_pylist()):
        allowed = access.allowed_pairs(groups)
        together.setdefault(allowed.tobytes(), (allowed, []))[1].append(place)
    sets = []
    for allowed, places in together.values():
        eligible = access.rows(allowed)
        if wanted is not None:
            eligible = eligible[wanted[eligible]]
        sets.append(CandidateSet(np.array(places, dtype=np.int64), eligible))
    return sets


def search_cases(
    space: EmbeddedSpace,
    corpus_items: pa.Table,
    cases: pa.Table,
    k: int,
    *,
    exact: ExactIndex | None = None,
    index: ApproximateIndex | None = None,
    among: np.ndarray | None = None,
    threads: int | None = None,
) -> tuple[pa.Table, pa.Table]:
    """The best `k` documents of each case: (SCORED ordered by case_no and rank, SEARCHES).

    `corpus_items` follows ITEMS, `cases` CASES. `exact` is this space's exact index, built here
    unless given; `index` searches instead of it if given. `among` as in `candidate_sets`. Raises
    UsageError for a k that is not a positive integer, a case whose query item is not a query of
    the space, and an index of another signature.
    """
    k = positive_k(k)
    exact = ExactIndex.build(space) if exact is None else exact
    for engine in (exact, index):
        if engine is not None:
            check_same_space(engine.contract, space.contract)
    item_no = space.document_item_no
    k = min(k, max(len(item_no), 1))
    if k > _LARGEST_RANK:
        raise UsageError(f"k is {k}; results hold at most {_LARGEST_RANK} documents of a case")
    case_no = cases["case_no"].to_numpy()
    vectors = space.vectors[_query_rows(space, cases)]
    lengths = norms(vectors)

    ranked: list[tuple[np.ndarray, ...]] = []
    searched: list[tuple[np.ndarray, ...]] = []
    for group in candidate_sets(space, corpus_items, cases, among):
        places, eligible = group.places, group.eligible
        nprobe = np.zeros(len(places), dtype=np.int32)
        path, steps = "empty", np.ones(len(places))
        if eligible.size > 0:
            metric = space.contract.metric
            queries = vectors[places]
            largest = float(exact.document_norms[eligible].max())
            steps = grid_steps(metric, lengths[places], largest)
            if index is None:
                rows, scores = exact.search(queries, k, eligible, threads=threads)
                path = "exact"
            else:
                hits = index.search_detailed(queries, k, eligible, threads=threads)
                rows, scores, nprobe, path = hits.rows, hits.scores, hits.nprobe, hits.path
            query_at, rank_at = np.nonzero(rows >= 0)
            found = rows[query_at, rank_at]
            returned = scores[query_at, rank_at]
            true = returned
            if index is not None:
                true = pair_scores(
                    space.documents,
                    queries,
                    (query_at, found),
                    metric,
                    exact.document_norms,
                    lengths[places],
                )
            ranked.append((case_no[places[query_at]], rank_at + 1, item_no[found], returned, true))
        count = np.full(len(places), len(eligible))
        searched.append((case_no[places], count, nprobe, np.full(len(places), path), steps))
    return _table(ranked, SCORED, by=(1, 0)), _without_zero_nprobe(_table(searched, SEARCHES, (0,)))


def _table(parts: list[tuple[np.ndarray, ...]], schema: pa.Schema, by: tuple[int, ...]) -> pa.Table:
    """Column parts as one table, ordered by the columns `by` (the last one first)."""
    if not parts:
        return schema.empty_table()
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort([columns[at] for at in by])
    arrays = [
        pa.array(column[order], type=field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def _without_zero_nprobe(searches: pa.Table) -> pa.Table:
    at = searches.schema.get_field_index("nprobe")
    nprobe = searches["nprobe"]
    probed = pc.if_else(pc.greater(nprobe, 0), nprobe, pa.scalar(None, nprobe.type))
    return searches.set_column(at, SEARCHES.field("nprobe"), probed)


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
