"""The queries of an experiment: their vectors, and which documents each may see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rag_assets.canonical.corpus import Corpus
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.results.search import candidate_sets


class SearchIndex(Protocol):
    """What searches a space's documents; see `ExactIndex.search` for shapes and padding."""

    def search(
        self,
        queries: np.ndarray,
        k: int,
        eligible: np.ndarray | None = None,
        *,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]: ...


@dataclass(frozen=True)
class Queries:
    """`vectors: float32|float64[m, d]`; `eligible_sets`: the distinct sets of eligible documents,
    each `int64[n_eligible]` ascending, or None for all; `set_no: int64[m]` numbers each query's.
    """

    vectors: np.ndarray
    eligible_sets: tuple[np.ndarray | None, ...]
    set_no: np.ndarray

    def __len__(self) -> int:
        return len(self.vectors)

    def eligible(self, row: int) -> np.ndarray | None:
        return self.eligible_sets[int(self.set_no[row])]

    def take(self, rows: np.ndarray) -> Queries:
        return Queries(self.vectors[rows], self.eligible_sets, self.set_no[rows])

    def eligible_counts(self, document_count: int) -> np.ndarray:
        """int64[m]."""
        sizes = [document_count if rows is None else len(rows) for rows in self.eligible_sets]
        counts: np.ndarray = np.array(sizes, dtype=np.int64)[self.set_no]
        return counts

    def groups(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """(some of `rows`, what they may see) for each distinct set among them."""
        numbers = self.set_no[rows]
        for number in np.unique(numbers):
            yield rows[numbers == number], self.eligible_sets[int(number)]


def case_queries(space: EmbeddedSpace, corpus: Corpus) -> Queries:
    """The query cases of a corpus in one space, each with its own vector and rights."""
    first = space.document_count
    query_no = space.items["item_no"].to_numpy()[first:]
    at = first + np.searchsorted(query_no, corpus.cases["query_item_no"].to_numpy())
    sets = candidate_sets(space, corpus.items, corpus.cases)
    set_no = np.empty(len(at), dtype=np.int64)
    for number, group in enumerate(sets):
        set_no[group.places] = number
    # A set of all documents filters nothing, and is not passed on as a filter.
    eligible = tuple(None if len(group.eligible) == first else group.eligible for group in sets)
    return Queries(np.asarray(space.vectors[at]), eligible, set_no)


def search_all(
    index: SearchIndex, queries: Queries, k: int, *, threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(rows: int64[m, k], scores: float64[m, k]) of every query, padded as an index pads."""
    rows = np.full((len(queries), k), -1, dtype=np.int64)
    scores = np.full((len(queries), k), np.nan)
    for some, eligible in queries.groups(np.arange(len(queries))):
        if eligible is None or eligible.size:
            rows[some], scores[some] = index.search(
                queries.vectors[some], k, eligible, threads=threads
            )
    return rows, scores
