"""Stage one of exact search: float32 stand-ins whose inner products propose candidates.

For each metric, ranking a query's documents is ranking a target t(x), computed approximately as
`stand_in(q) · stand_in(x) + bias(x)` in float32:

- cosine: t = q'·x / |x| with q' = q / |q|
- dot: t = q'·(w x), q' = q / |q|, w a power of two that brings max|x| near 1
- euclidean: t = (wq)·(wx) - |wx|²/2, since |q - x|² = |q|² - 2 (q·x - |x|²/2)

The bound on |computed - t|. Let u = 2^-24 and g(j) = j u / (1 - j u). A stand-in's component
carries at most two roundings; a product, in any order of summation, fused or not, at most d more;
adding the bias one; the bias itself one. With Cauchy-Schwarz on sum |q_i x_i| the relative part
is at most g(d + 8) · |q'| · max|x'| (plus g(d + 8) · max|x'|² for the euclidean bias). What
underflows, even where subnormals are flushed to zero, adds at most 2^-126 per rounding:
8 d 2^-126 · (1 + |q'| + max|x'|)² covers them all. Where cosine uses the stored vectors because
they are nearly unit, | |x| - 1 | is added.

A document can only belong to the top k if its key is at least that of the k-th, so its score at
least the k-th score less one grid step and the float64 rounding (1.25 steps cover both). In the
target that slack is, for cosine and dot, the step divided by the target's scale; for euclidean,
distances D <= D_k + s give D²/2 <= D_k²/2 + s D_k + s²/2, with D_k <= |q'| + max|x'|. As the
k-th computed value is itself wrong by up to the bound, a document stays a candidate as long as
computed >= k-th computed - (2 bound + slack) =: k-th computed - margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import Metric
from rag_assets.indexes.ranking import grid_steps

# Between these exponents stored float32 components can be used as they are, unscaled.
_EASY_EXPONENT = 40
# Pairs scored at once on their own: their vectors, 1 MiB in float32, stay in a core's cache.
_PAIR_ELEMENTS = 1 << 17

# For each thread, a function (start, stop) -> (first query, targets: [stop - start, <= batch]) of
# a block of documents, for one batch of queries after another. An array lasts until the next one.
Tiles = Callable[[], Callable[[int, int], Iterator[tuple[int, np.ndarray]]]]


@dataclass(frozen=True)
class Proposals:
    """What stage one needs for a batch of queries over one set of eligible documents.

    `queries`: float32[m, d] stand-ins. `margin`: float64[m], see the module. `factors`: None
    where stored vectors serve as they are, else float64[] or float64[n_eligible], the factor of
    each document. `biases`: None or float32[n_eligible]. `scale`: of the targets, which are t with
    both vectors times w, against t as it stands. `span`: at least the norm of any stand-in of a
    document, but for float32 roundings.
    """

    documents: np.ndarray
    rows: np.ndarray | None
    queries: np.ndarray
    margin: np.ndarray
    factors: np.ndarray | None
    biases: np.ndarray | None
    scale: float = 1.0
    span: float = 1.0

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def sharp(self) -> None:
        return None

    def tiles(self, block_rows: int, batch: int) -> Tiles:
        """Targets, float32, of blocks of up to `block_rows` documents for `batch` queries each."""

        def per_thread() -> Callable[[int, int], Iterator[tuple[int, np.ndarray]]]:
            buffer = np.empty(batch * block_rows, dtype=np.float32)

            def targets(start: int, stop: int) -> Iterator[tuple[int, np.ndarray]]:
                block = self.block(start, stop)
                for first in range(0, len(self.queries), batch):
                    queries = self.queries[first : first + batch]
                    # Documents along the rows: OpenBLAS is faster so for few queries.
                    tile = buffer[: len(block) * len(queries)].reshape(len(block), len(queries))
                    np.matmul(block, queries.T, out=tile)
                    if self.biases is not None:
                        tile += self.biases[start:stop, np.newaxis]
                    yield first, tile

            return targets

        return per_thread

    def pair_targets(self, query_rows: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Targets, float32[p], of single pairs (int64[p] each)."""
        targets = np.empty(len(places), dtype=np.float32)
        chunk = min(max(1, _PAIR_ELEMENTS // self.documents.shape[1]), max(1, len(places)))
        # New memory for each chunk would cost as much as the products.
        stored = np.empty((chunk, self.documents.shape[1]), self.documents.dtype)
        asked = np.empty(stored.shape, np.float32)
        for start in range(0, len(places), chunk):
            part = slice(start, start + chunk)
            at = places[part]
            vectors, queries = stored[: len(at)], asked[: len(at)]
            rows = at if self.rows is None else self.rows[at]
            np.take(self.documents, rows, axis=0, out=vectors, mode="clip")
            np.take(self.queries, query_rows[part], axis=0, out=queries, mode="clip")
            if self.factors is not None:
                factors = self.factors if self.factors.ndim == 0 else self.factors[at, np.newaxis]
                vectors = _scaled(vectors, factors)
            np.vecdot(vectors, queries, out=targets[part])
            if self.biases is not None:
                targets[part] += self.biases[at]
        return targets

    def stored(self, start: int, stop: int) -> np.ndarray:
        """The stored vectors, [stop - start, d], of the eligible documents in that range."""
        wanted: slice | np.ndarray = slice(start, stop)
        if self.rows is not None:
            wanted = self.rows[start:stop]
            if wanted[-1] - wanted[0] == len(wanted) - 1:
                wanted = slice(int(wanted[0]), int(wanted[-1]) + 1)
        part: np.ndarray = self.documents[wanted]
        return part

    def block(self, start: int, stop: int) -> np.ndarray:
        """Stand-ins, float32[stop - start, d], of the eligible documents in that range."""
        stored = self.stored(start, stop)
        if self.factors is None:
            return np.ascontiguousarray(stored)
        factors = self.factors if self.factors.ndim == 0 else self.factors[start:stop, np.newaxis]
        return _scaled(stored, factors)


def prepare_proposals(
    documents: np.ndarray,
    rows: np.ndarray | None,
    eligible_norms: np.ndarray,
    queries: np.ndarray,
    query_norms: np.ndarray,
    metric: Metric,
) -> Proposals:
    """Stand-ins and margins. `rows`: int64[n_eligible] ascending, or None for all documents.

    `eligible_norms: float64[n_eligible]`, not empty; `query_norms: float64[m]`, both checked.
    """
    dimension = documents.shape[1]
    largest = float(eligible_norms.max())
    steps = grid_steps(metric, query_norms, largest)
    relative = _rounding(dimension + 8)
    tiny = 8.0 * dimension * 2.0**-126
    is_float32 = documents.dtype == np.float32 and queries.dtype == np.float32
    directions = _scaled(queries, _inverse(query_norms)[:, np.newaxis])
    factors: np.ndarray | None = None
    biases: np.ndarray | None = None

    if metric == "cosine":
        off_unit = float(np.abs(eligible_norms - 1.0).max())
        if is_float32 and off_unit <= relative:
            bound = relative * (1.0 + off_unit) + off_unit + 16.0 * tiny
        else:
            factors = _inverse(eligible_norms)
            bound = relative + 9.0 * tiny
        margin = 2.0 * bound + target_slack(metric, steps, query_norms, largest)
        return Proposals(documents, rows, directions, margin, factors, biases)

    reach = largest if metric == "dot" else max(largest, float(query_norms.max()))
    exponent = int(np.frexp(reach)[1])
    weight = 1.0
    if not is_float32 or abs(exponent) > _EASY_EXPONENT:
        weight = float(np.ldexp(1.0, -exponent))
        factors = np.asarray(weight)
    span = largest * weight
    if metric == "dot":
        bound = relative * span + tiny * (2.0 + span) ** 2
        margin = 2.0 * bound + target_slack(metric, steps, query_norms, largest) * weight
        return Proposals(documents, rows, directions, margin, factors, biases, weight, span)

    query_spans = query_norms * weight
    bounds = relative * (query_spans * span + span * span)
    bounds += tiny * (1.0 + query_spans + span) ** 2
    margin = 2.0 * bounds + target_slack(metric, steps * weight, query_spans, span)
    biases = (-0.5 * (eligible_norms * weight) ** 2).astype(np.float32)
    directions = _scaled(queries, np.asarray(weight))
    return Proposals(documents, rows, directions, margin, factors, biases, weight * weight, span)


def score_targets(
    metric: Metric, scores: np.ndarray, query_norms: np.ndarray, scale: float
) -> np.ndarray:
    """Targets, float64[m], of documents with these `scores: float64[m]`; `scale` of `Proposals`.

    Their float64 roundings are covered by what `target_slack` has above one step.
    """
    targets = scores
    if metric == "dot":
        targets = scores * _inverse(query_norms) * scale
    elif metric == "euclidean":
        targets = 0.5 * (query_norms * query_norms - scores * scores) * scale
    return targets


def target_slack(
    metric: Metric, steps: np.ndarray, query_norms: np.ndarray, largest: float
) -> np.ndarray:
    """How far below the k-th target one of the top k may lie: float64[m], see the module."""
    slack: np.ndarray = 1.25 * steps
    if metric == "dot":
        slack *= _inverse(query_norms)
    elif metric == "euclidean":
        slack *= query_norms + largest + slack / 2.0
    return slack


def _rounding(steps: int) -> float:
    """g(steps) of the module: the relative error of that many float32 roundings."""
    unit = steps * 2.0**-24
    return unit / (1.0 - unit)


def _inverse(values: np.ndarray) -> np.ndarray:
    """1 / values, 0 where a value is 0 (a zero vector's stand-in is zero)."""
    inverse: np.ndarray = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return inverse


def _scaled(vectors: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """float32 of vectors times factors, multiplied in float64."""
    scaled = np.empty(vectors.shape, dtype=np.float32)
    np.multiply(vectors, factors, out=scaled, dtype=np.float64, casting="same_kind")
    return scaled
