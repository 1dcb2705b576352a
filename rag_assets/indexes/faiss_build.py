"""Building FAISS indexes from specs: same seed and data give the same bytes on any thread count.

Constructors are used rather than factory strings, which bring settings of their own (polysemous
codes, quantization without residuals).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rag_assets.canonical.contracts import Metric
from rag_assets.errors import UsageError
from rag_assets.indexes.faiss_engine import Engine, engine_threads, load_faiss
from rag_assets.indexes.specs import Hnsw, IndexSpec, IvfFlat, IvfPq, IvfRabitq

# k-means wants at least so many points per centroid (FAISS's own bounds), and gains little
# from more than the second.
FEWEST_POINTS = 39
MOST_POINTS = 256
# Vectors that OPQ learns its rotation from, at most (FAISS's own bound).
_OPQ_POINTS = 65_536
_OPQ_ROUNDS = 20
# Vectors converted and added at once.
_BLOCK_ROWS = 65_536
# Squares of float32 components stay in range between these norms.
_SMALLEST_NORM = 1e-15
_LARGEST_NORM = 1e15


def training_warnings(spec: IndexSpec, count: int) -> tuple[str, ...]:
    """What FAISS would print on stderr about too few of `count` training vectors, one line each."""
    centroids: list[tuple[str, int]] = []
    if not isinstance(spec, Hnsw):
        centroids.append((f"the {spec.n_clusters} clusters", spec.n_clusters))
    if isinstance(spec, IvfPq):
        size = 2**spec.n_bits
        centroids.append((f"the {size} entries of each codebook (n_bits {spec.n_bits})", size))
    return tuple(
        f"{what} are trained on {count} vectors, {count / number:.1f} for each; "
        f"below {FEWEST_POINTS} the centroids follow chance"
        for what, number in centroids
        if count < FEWEST_POINTS * number
    )


def engine_vectors(vectors: np.ndarray, lengths: np.ndarray, metric: Metric) -> np.ndarray:
    """What FAISS sees of `vectors: float32|float64[n, d]`: float32[n, d], contiguous.

    Cosine: scaled to unit length (zero stays zero), so that squared L2 distance orders by cosine.
    `lengths: float64[n]` from `ranking.norms`.
    """
    if metric != "cosine":
        return np.ascontiguousarray(vectors, dtype=np.float32)
    factors = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    unit = np.empty(vectors.shape, dtype=np.float32)
    np.multiply(vectors, factors[:, np.newaxis], out=unit, dtype=np.float64, casting="same_kind")
    return unit


def check_range(lengths: np.ndarray, metric: Metric, what: str) -> None:
    """Raise UsageError for norms whose squares leave float32 (cosine works on unit vectors)."""
    if metric == "cosine":
        return
    fine = (lengths == 0) | ((lengths >= _SMALLEST_NORM) & (lengths <= _LARGEST_NORM))
    if not fine.all():
        at = int(np.argmin(fine))
        raise UsageError(
            f"{what} {at} has norm {lengths[at]}; approximate indexes compute {metric} in float32 "
            f"and need norms of 0 or from {_SMALLEST_NORM:.0e} to {_LARGEST_NORM:.0e}"
        )


def build_engine(
    spec: IndexSpec,
    documents: np.ndarray,
    lengths: np.ndarray,
    metric: Metric,
    *,
    threads: int | None = None,
) -> Engine:
    """Train and fill the index of `documents: float32|float64[n, d]`, whose norms are `lengths`.

    The spec must be free of faults. Training takes a seeded sample of at most 256 vectors per
    centroid; a graph needs no training.
    """
    faiss = load_faiss()
    outer = _empty(spec, documents.shape[1], metric)
    training = engine_vectors(*_sample(spec, documents, lengths), metric)
    with engine_threads(threads):
        if isinstance(spec, IvfPq) and spec.opq:
            with engine_threads(1):  # LAPACK's results depend on the number of threads
                faiss.downcast_VectorTransform(outer.chain.at(0)).train(training)
        outer.train(training)
        for block in _blocks(documents, lengths, metric):
            outer.add(block)
        if isinstance(spec, IvfPq | IvfRabitq) and spec.refine and spec.refine.vectors == "sq8":
            outer = faiss.IndexRefine(outer, _sq8_copy(documents, lengths, metric))
    return Engine(outer)


def _empty(spec: IndexSpec, dimension: int, metric: Metric) -> Any:
    faiss = load_faiss()
    measure = faiss.METRIC_INNER_PRODUCT if metric == "dot" else faiss.METRIC_L2
    if isinstance(spec, Hnsw):
        graph = faiss.IndexHNSWFlat(dimension, spec.m, measure)
        graph.hnsw.efConstruction = spec.ef_construction
        graph.hnsw.rng = faiss.RandomGenerator(spec.seed)
        return graph
    flat = faiss.IndexFlatIP if metric == "dot" else faiss.IndexFlatL2
    arguments = (flat(dimension), dimension, spec.n_clusters)
    rotation = None
    if isinstance(spec, IvfFlat):
        lists = faiss.IndexIVFFlat(*arguments, measure)
    elif isinstance(spec, IvfPq):
        lists = faiss.IndexIVFPQ(*arguments, spec.n_subvectors, spec.n_bits, measure)
        _set_clustering(lists.pq.cp, spec.n_iters, spec.seed)
        if spec.opq:
            rotation = _opq(spec, dimension)
    else:
        # Four times as fast as IndexIVFRaBitQ at the same recall. The codes are the signs of the
        # components, so a random rotation has to spread the variance over them first.
        lists = faiss.IndexIVFRaBitQFastScan(*arguments, measure)
        rotation = faiss.RandomRotationMatrix(dimension, dimension)
        rotation.init(spec.seed)
    _set_clustering(lists.cp, spec.n_iters, spec.seed)
    return lists if rotation is None else faiss.IndexPreTransform(rotation, lists)


def _set_clustering(parameters: Any, n_iters: int, seed: int) -> None:
    parameters.niter = n_iters
    parameters.seed = seed
    # Centroids of unit length would not be the means that residuals need.
    parameters.spherical = False
    parameters.max_points_per_centroid = MOST_POINTS
    parameters.min_points_per_centroid = 1  # see `training_warnings`


def _opq(spec: IvfPq, dimension: int) -> Any:
    faiss = load_faiss()
    quantizer = faiss.ProductQuantizer(dimension, spec.n_subvectors, spec.n_bits)
    _set_clustering(quantizer.cp, spec.n_iters, spec.seed)
    rotation = faiss.OPQMatrix(dimension, spec.n_subvectors)
    rotation.pq = quantizer
    rotation.quantizer_kept_alive = quantizer  # the engine only borrows it
    rotation.niter = _OPQ_ROUNDS
    rotation.max_train_points = _OPQ_POINTS
    return rotation


def _sample(
    spec: IndexSpec, documents: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The documents to train on and their norms, in the order of their rows."""
    if isinstance(spec, Hnsw):
        return documents[:0], lengths[:0]
    most = MOST_POINTS * spec.n_clusters
    if isinstance(spec, IvfPq):
        most = max(most, MOST_POINTS * 2**spec.n_bits, _OPQ_POINTS if spec.opq else 0)
    count = len(documents)
    if count <= most:
        return documents, lengths
    chosen = np.sort(np.random.default_rng(spec.seed).choice(count, most, replace=False))
    return documents[chosen], lengths[chosen]


def _sq8_copy(documents: np.ndarray, lengths: np.ndarray, metric: Metric) -> Any:
    """Every document in 8 bits a component, between the component's smallest and largest value."""
    faiss = load_faiss()
    measure = faiss.METRIC_INNER_PRODUCT if metric == "dot" else faiss.METRIC_L2
    dimension = documents.shape[1]
    copy = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_8bit, measure)
    low, high = np.full(dimension, np.inf, np.float32), np.full(dimension, -np.inf, np.float32)
    for block in _blocks(documents, lengths, metric):
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
    copy.train(np.stack([low, high]))
    for block in _blocks(documents, lengths, metric):
        copy.add(block)
    return copy


def _blocks(documents: np.ndarray, lengths: np.ndarray, metric: Metric) -> Iterator[np.ndarray]:
    for start in range(0, len(documents), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        yield engine_vectors(documents[block], lengths[block], metric)
