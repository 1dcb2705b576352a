"""Recall of an approximate search against the exact one, where no SQL is at hand.

For a query with E eligible documents and K = min(k, E): `recall` is the share of the exact top K
that the approximate top k holds. A repeated answer counts once; a query with E = 0 is undefined
(`empty_eligible`), whatever came back; fewer than K distinct answers is low recall, and how many
are missing is `short_results`. The tie-aware form also counts an answer whose exact score ties with
the K-th, which exact search left out only because of its id: the two are different numbers and are
named apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rag_assets.canonical.contracts import Metric
from rag_assets.errors import UsageError
from rag_assets.indexes.exact import positive_k
from rag_assets.indexes.ranking import grid_steps, norms, pair_scores, ranking_keys

OK = "ok"
EMPTY_ELIGIBLE = "empty_eligible"
_NO_KEY = np.iinfo(np.int64).min


@dataclass(frozen=True)
class AnnRecall:
    """Per query: `recall: float64[m]`, NaN where undefined; `tie_aware: float64[m]`, the same, or
    None where no keys were given; `short_results: int64[m]`; `status: str[m]`, "ok" or
    "empty_eligible".
    """

    recall: np.ndarray
    tie_aware: np.ndarray | None
    short_results: np.ndarray
    status: np.ndarray

    @property
    def mean(self) -> float:
        """Mean over defined queries; NaN where there are none."""
        return _defined_mean(self.recall)

    @property
    def tie_aware_mean(self) -> float:
        return float("nan") if self.tie_aware is None else _defined_mean(self.tie_aware)

    @property
    def defined(self) -> int:
        return int((self.status == OK).sum())


def ann_recall(
    truth: np.ndarray,
    found: np.ndarray,
    eligible_counts: np.ndarray,
    k: int,
    *,
    truth_keys: np.ndarray | None = None,
    found_keys: np.ndarray | None = None,
) -> AnnRecall:
    """Recall@k of `found: int64[m, *]` against the exact `truth: int64[m, at least K]`.

    Rows are in rank order; negative entries are padding; only the first `k` of each row count.
    `eligible_counts: int[m]` is E of each query. `*_keys: int64`, shaped like the rows, from
    `ranking_keys_of`, give the tie-aware form. Raises UsageError for a k that is not a positive
    integer, and for a truth that holds fewer than K distinct rows of a query.
    """
    k = positive_k(k)
    count = len(truth)
    wanted = np.minimum(np.asarray(eligible_counts, dtype=np.int64), k)
    if found.shape[0] != count or wanted.shape != (count,):
        raise UsageError(
            f"{count} exact rankings, {found.shape[0]} approximate ones and "
            f"{wanted.shape[0]} counts of eligible documents; all three must be equal in number"
        )
    defined = wanted > 0
    true_pairs, _ = _distinct(np.where(np.arange(truth.shape[1]) < wanted[:, None], truth, -1), k)
    held = np.bincount(true_pairs[0], minlength=count)
    if (held != wanted).any():
        at = int(np.argmax(held != wanted))
        raise UsageError(
            f"the exact ranking of query {at} holds {held[at]} distinct documents where "
            f"{wanted[at]} are needed (k {k}, {eligible_counts[at]} eligible)"
        )
    pairs, places = _distinct(found, k)
    width = 1 + max(true_pairs[1].max(initial=0), pairs[1].max(initial=0))
    hits = np.isin(pairs[0] * width + pairs[1], true_pairs[0] * width + true_pairs[1])

    def share(counted: np.ndarray) -> np.ndarray:
        totals = np.minimum(np.bincount(pairs[0][counted], minlength=count), wanted)
        shares: np.ndarray = np.divide(totals, wanted, out=np.full(count, np.nan), where=defined)
        return shares

    tie_aware = None
    if truth_keys is not None and found_keys is not None:
        last = np.maximum(wanted - 1, 0)[:, None]
        kth = np.take_along_axis(truth_keys, last, axis=1)[:, 0]
        tie_aware = share(hits | (found_keys[pairs[0], places] == kth[pairs[0]]))
    return AnnRecall(
        recall=share(hits),
        tie_aware=tie_aware,
        short_results=np.maximum(wanted - np.bincount(pairs[0], minlength=count), 0),
        status=np.where(defined, OK, EMPTY_ELIGIBLE),
    )


def ranking_keys_of(
    documents: np.ndarray,
    queries: np.ndarray,
    rows: np.ndarray,
    metric: Metric,
    largest_norms: np.ndarray,
    document_norms: np.ndarray | None = None,
) -> np.ndarray:
    """The exact scores of `rows: int64[m, k]` (-1 padded) on the ranking grid: int64[m, k].

    `largest_norms: float64[m]`, the largest norm among the documents that are eligible for each
    query, sets the grid as in `ranking.grid_steps`; `document_norms: float64[n]` is computed for
    the rows in question if absent. Padding gets a key that no score has.
    """
    keys = np.full(rows.shape, _NO_KEY, dtype=np.int64)
    at = np.nonzero(rows >= 0)
    if at[0].size == 0:
        return keys
    if document_norms is None:
        used = np.unique(rows[at])
        document_norms = np.full(len(documents), np.nan)
        document_norms[used] = norms(documents, used)
    query_norms = norms(queries)
    steps = np.array(
        [
            grid_steps(metric, query_norms[number : number + 1], float(largest))[0]
            for number, largest in enumerate(largest_norms)
        ]
    )
    scores = pair_scores(documents, queries, (at[0], rows[at]), metric, document_norms, query_norms)
    keys[at] = ranking_keys(scores, steps[at[0]])
    return keys


def _distinct(rows: np.ndarray, k: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """((query: int64[p], row: int64[p]), place: int64[p]) of each distinct entry of the top k."""
    top = rows[:, :k]
    query, place = np.nonzero(top >= 0)
    row = top[query, place].astype(np.int64)
    codes = query * (1 + row.max(initial=0)) + row
    _, first = np.unique(codes, return_index=True)
    return (query[first], row[first]), place[first]


def _defined_mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")
