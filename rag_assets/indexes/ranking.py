"""Scores and their order: one rule for every metric and every index, on every machine.

A score is float64, computed from the stored components by elementwise operations in a fixed order
(no BLAS, no library reduction), so that its bits depend on the two vectors alone:

- cosine: q·x / (|q| |x|), 0 where either vector is zero
- dot: q·x
- euclidean: -|q - x|, from the differences of the components

Scores that are equal in mathematics can differ in their last bits (parallel vectors under cosine),
so the order uses the score on a grid: `key = rint(score / step)`, where `step` is 2^-30 of the
largest magnitude that any eligible document could reach for that query, rounded up to a power of
two so that the division is exact. Key descending, then row ascending, is the order.
"""

from __future__ import annotations

import numpy as np

from rag_assets.canonical.contracts import Metric
from rag_assets.errors import UsageError

GRID = 2.0**-30
# Squares, products and sums of float64 components stay in range between these norms.
SMALLEST_NORM = 2.0**-400
LARGEST_NORM = 2.0**400
# Elements of a float64 working block: so small that several of them stay in a core's cache.
_BLOCK_ELEMENTS = 3 << 14


def norms(vectors: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Euclidean norms, float64[n], of `vectors: float32|float64[*, d]` (of `rows` only, if given).

    float64 vectors are scaled by a power of two first, so that no square over- or underflows.
    """
    count = len(vectors) if rows is None else len(rows)
    result = np.empty(count, dtype=np.float64)
    dimension = vectors.shape[1]
    runs = _runs(dimension)
    chunk = max(1, _BLOCK_ELEMENTS // dimension)
    memory = np.empty(min(chunk, count) * dimension)
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        wanted = slice(start, stop) if rows is None else rows[start:stop]
        part = vectors[wanted]
        block = memory[: part.size].reshape(runs, len(part), dimension // runs)
        apart = part.reshape(len(part), runs, -1).transpose(1, 0, 2)
        if vectors.dtype == np.float32:
            block[:] = apart
            block *= block
            result[start:stop] = np.sqrt(_folded(block))
            continue
        _, exponents = np.frexp(np.abs(part).max(axis=1))
        np.ldexp(apart, -exponents[:, np.newaxis], out=block)
        block *= block
        with np.errstate(over="ignore"):
            result[start:stop] = np.ldexp(np.sqrt(_folded(block)), exponents)
    return result


def check_norms(values: np.ndarray, what: str) -> None:
    """Raise UsageError unless every norm is finite and can be multiplied without overflow."""
    fine = (values == 0) | ((values >= SMALLEST_NORM) & (values <= LARGEST_NORM))
    if not fine.all():
        at = int(np.argmin(fine))
        raise UsageError(
            f"{what} {at} has norm {values[at]}; search needs finite vectors whose norm is 0 "
            f"or between {SMALLEST_NORM:.0e} and {LARGEST_NORM:.0e}"
        )


def pair_scores(
    documents: np.ndarray,
    queries: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray],
    metric: Metric,
    document_norms: np.ndarray,
    query_norms: np.ndarray,
) -> np.ndarray:
    """Scores, float64[p], of pairs (query rows: int64[p], document rows: int64[p]).

    `documents: float32|float64[n, d]`, `queries: [m, d]`, norms as `norms` gives them (cosine
    only uses them). Each score depends on its two vectors alone.
    """
    query_rows, document_rows = pairs
    scores = np.empty(len(query_rows), dtype=np.float64)
    dimension = documents.shape[1]
    # Blocks to work in are made once: new memory for each would cost as much as the arithmetic.
    runs = _runs(dimension)
    chunk = min(max(1, _BLOCK_ELEMENTS // dimension), max(1, len(scores)))
    stored = np.empty((chunk, runs, dimension // runs), dtype=documents.dtype)
    asked = np.empty(stored.shape, dtype=queries.dtype)
    memory = np.empty(stored.size)
    documents = documents.reshape(-1, *stored.shape[1:])
    queries = queries.reshape(-1, *stored.shape[1:])
    for start in range(0, len(scores), chunk):
        part = slice(start, start + chunk)
        own, other = stored[: len(scores[part])], asked[: len(scores[part])]
        np.take(documents, document_rows[part], axis=0, out=own, mode="clip")
        np.take(queries, query_rows[part], axis=0, out=other, mode="clip")
        own, other = own.transpose(1, 0, 2), other.transpose(1, 0, 2)
        block = memory[: own.size].reshape(own.shape)
        block[:] = own
        if metric == "euclidean":
            block -= other
            block *= block
        else:
            block *= other
        scores[part] = _folded(block)
    if metric == "euclidean":
        scores = -np.sqrt(scores)
    if metric == "cosine":
        lengths = query_norms[query_rows] * document_norms[document_rows]
        scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    scores += 0.0  # -0.0 becomes 0.0
    return scores


def grid_steps(metric: Metric, query_norms: np.ndarray, largest_norm: float) -> np.ndarray:
    """The grid's step for each query: float64[m], powers of two.

    `largest_norm` is the largest norm among the documents that are eligible for the query.
    The largest attainable magnitude is 1 (cosine), |q| max|x| (dot), |q| + max|x| (euclidean);
    where it is 0 all scores are 0 and the step is 1.
    """
    if metric == "cosine":
        return np.full(len(query_norms), GRID)
    largest = query_norms * largest_norm if metric == "dot" else query_norms + largest_norm
    mantissas, exponents = np.frexp(largest)
    exponents -= mantissas == 0.5
    steps: np.ndarray = np.where(largest > 0, np.ldexp(GRID, exponents), 1.0)
    return steps


def ranking_keys(scores: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Scores on the grid, int64: equal keys are ties. `steps` broadcasts against `scores`."""
    keys: np.ndarray = np.rint(scores / steps).astype(np.int64)
    return keys


def rank_pairs(
    query_rows: np.ndarray, document_rows: np.ndarray, keys: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best `k` pairs of each query: (positions: int64[r], ranks from 0: int64[r]).

    `positions` index into the arguments (each of length p), ordered by query, then key
    descending, then document row ascending.
    """
    same = query_rows[1:] == query_rows[:-1]
    later = (query_rows[1:] > query_rows[:-1]) | (same & (document_rows[1:] > document_rows[:-1]))
    present = side_by_side(query_rows) if later.all() else None
    if present is not None:  # several times as fast as sorting by three keys
        falling = np.full(present.shape, np.iinfo(np.int64).max)
        falling[present] = -keys
        best = np.argsort(falling, axis=1, kind="stable")[:, :k]
        counts = present.sum(axis=1)
        best += (counts.cumsum() - counts)[:, np.newaxis]
        kept = present[:, :k]  # what is absent comes last
        return best[kept], np.broadcast_to(np.arange(kept.shape[1]), kept.shape)[kept]
    order = np.lexsort((document_rows, -keys, query_rows))
    ordered = query_rows[order]
    ranks = np.arange(len(order)) - np.searchsorted(ordered, ordered, side="left")
    kept = ranks < k
    return order[kept], ranks[kept]


def side_by_side(query_rows: np.ndarray) -> np.ndarray | None:
    """Where a table with a row for each query met holds its pairs: bool[m, c], from the left.

    `query_rows: int64[p]` ascending; c is the largest number of pairs of a query. None where there
    are no pairs, or where most of the table would be empty.
    """
    first = np.flatnonzero(np.diff(query_rows, prepend=-1))
    counts = np.diff(first, append=len(query_rows))
    widest = int(counts.max(initial=0))
    if widest == 0 or len(first) * widest > 4 * len(query_rows):
        return None
    present: np.ndarray = np.arange(widest) < counts[:, np.newaxis]
    return present


def _runs(dimension: int) -> int:
    """Into how many runs of columns a block for `_folded` takes vectors apart: 4, 2 or 1.

    The first folds then add up arrays that lie in one piece, and NumPy is several times as fast
    as on parts of rows.
    """
    return next((it for it in (4, 2) if dimension % it == 0 and dimension >= 64 * it), 1)


def _folded(block: np.ndarray) -> np.ndarray:
    """Sums, float64[p], over the d components of p vectors in `block: float64[runs, p, d / runs]`.

    Folds the upper half of the components onto the lower until one is left: elementwise additions
    in an order that d alone decides. (NumPy's own sums change with SIMD width and layout.)
    Overwrites the block.
    """
    while len(block) > 1:
        half = len(block) // 2
        block[:half] += block[half:]
        block = block[:half]
    rows = block[0]
    width = rows.shape[1]
    while width > 96:
        half = (width + 1) // 2
        rows[:, : width - half] += rows[:, half:width]
        width = half
    columns = rows[:, :width].T.copy()  # narrow rows are slow to add, long columns are not
    while width > 1:
        half = (width + 1) // 2
        columns[: width - half] += columns[half:width]
        width = half
    sums: np.ndarray = columns[0]
    return sums
