"""Nearest neighbours that a source brings along, compared with those that exact search found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from rag_assets.canonical.corpus import RESULTS, Corpus
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.indexes.ranking import norms, pair_scores
from rag_assets.quality.columns import labels
from rag_assets.quality.report import CheckReport
from rag_assets.quality.rules import in_set, row_count
from rag_assets.quality.validation import Frame, validate
from rag_assets.sources.collection import Collection, Neighbours

# Files hold orders that were found in float32: scores closer than this are a tie there. Relative
# to the largest score attainable for the query.
TIE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class CrossCheck:
    """Ground truth of a file against ours, query by query, to the depth that both have.

    `differing_ranks: int64[n_cases]`: ranks at which the exact scores of the two documents are no
    tie; `other_order: int64[n_cases]`: ranks with another document, ties included; `largest_gap`:
    the largest difference of scores at one rank, relative to the largest score attainable;
    `distance_gap`: the largest difference between the file's distances and ours, None without.
    """

    depth: int
    differing_ranks: np.ndarray
    other_order: np.ndarray
    largest_gap: float
    distance_gap: float | None

    @property
    def agrees(self) -> bool:
        """True where the two are equal up to ties."""
        return not self.differing_ranks.any()


def cross_check(
    neighbours: Neighbours,
    space: EmbeddedSpace,
    results: pa.Table,
    tolerance: float = TIE_TOLERANCE,
) -> CrossCheck:
    """Compare a source's neighbours with exact results (RESULTS) over the same documents.

    Case i is query i and document i is row i, as `neighbours.positional_collection` numbers them.
    Each document of either list is scored in float64; the lists are equal up to ties if at each
    rank the scores are.
    """
    metric, documents = space.contract.metric, space.documents
    queries = space.vectors[space.document_count :]
    ours = _by_rank(results, space, len(queries))
    depth = min(ours.shape[1], neighbours.rows.shape[1])
    ours, theirs = ours[:, :depth], neighbours.rows[:, :depth]
    lengths, sizes = norms(queries), norms(documents)
    at = np.repeat(np.arange(len(queries)), depth)

    def scores(rows: np.ndarray) -> np.ndarray:
        pairs = (at, rows.ravel())
        return pair_scores(documents, queries, pairs, metric, sizes, lengths).reshape(rows.shape)

    our_scores, their_scores = scores(ours), scores(theirs)
    largest = _attainable(metric, lengths, float(sizes.max()))[:, np.newaxis]
    gaps = np.abs(our_scores - their_scores) / largest
    distance_gap = None
    if neighbours.distances is not None:
        given = neighbours.distances[:, :depth].astype(np.float64)
        distance_gap = float(np.abs(given - _distance(metric, their_scores)).max(initial=0.0))
    return CrossCheck(
        depth=depth,
        differing_ranks=(gaps > tolerance).sum(axis=1),
        other_order=(ours != theirs).sum(axis=1),
        largest_gap=float(gaps.max(initial=0.0)),
        distance_gap=distance_gap,
    )


def check_ground_truth(
    collection: Collection, corpus: Corpus, space: EmbeddedSpace, results: pa.Table
) -> CheckReport:
    """Check `ground_truth_agrees`: the source's neighbours are ours, up to ties."""
    if collection.neighbours is None:
        raise ValueError("the collection has no ground truth of its own")
    found = cross_check(collection.neighbours, space, results)
    data = pd.DataFrame({"differing_ranks": found.differing_ranks})
    rules = (
        row_count("Ground truth without a query shows nothing.", min_value=1),
        in_set(
            "differing_ranks",
            [0],
            "The file's neighbours and exact search disagree beyond ties; check the metric of the "
            "contract and which vectors the file's ground truth was made from.",
        ),
    )
    numbers = {
        "depth": float(found.depth),
        "queries_in_other_order": float((found.other_order > 0).sum()),
        "largest_relative_score_gap": found.largest_gap,
    }
    if found.distance_gap is not None:
        numbers["largest_distance_gap"] = found.distance_gap
    frame = Frame("ground_truth", data, labels(corpus.cases["case_id"]), rules)
    return validate("ground_truth_agrees", (frame,), numbers)


def _by_rank(results: pa.Table, space: EmbeddedSpace, count: int) -> np.ndarray:
    """int64[n_queries, depth]: document rows of each case by rank."""
    case_no, rank, item_no = (results[name].to_numpy() for name in RESULTS.names[:3])
    depth = int(np.bincount(case_no, minlength=count).min()) if len(case_no) else 0
    rows = np.full((count, depth), -1, np.int64)
    kept = rank <= depth
    # Documents come by ascending item_no.
    rows[case_no[kept], rank[kept] - 1] = np.searchsorted(space.document_item_no, item_no[kept])
    return rows


def _attainable(metric: str, lengths: np.ndarray, largest: float) -> np.ndarray:
    if metric == "cosine":
        return np.ones(len(lengths))
    attainable = lengths * largest if metric == "dot" else lengths + largest
    return np.where(attainable > 0, attainable, 1.0)


def _distance(metric: str, scores: np.ndarray) -> np.ndarray:
    """As ann-benchmarks writes them: 1 - cosine, -dot, or the euclidean distance."""
    return 1.0 - scores if metric == "cosine" else -scores
