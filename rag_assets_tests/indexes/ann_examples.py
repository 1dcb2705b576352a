"""Spaces and specs that the tests of approximate indexes share."""

from __future__ import annotations

import numpy as np

from rag_assets.canonical.contracts import Dtype, Metric
from rag_assets.embeddings.space import EmbeddedSpace
from rag_assets.indexes.specs import (
    FilterPolicy,
    Hnsw,
    IndexSpec,
    IvfFlat,
    IvfPq,
    IvfRabitq,
    Refine,
)
from rag_assets_tests.results.spaces import embedded_space

LISTS = 16
SPECS: dict[str, IndexSpec] = {
    "ivf_flat": IvfFlat(LISTS, 6, n_iters=5),
    "ivf_pq": IvfPq(LISTS, 6, n_iters=5, n_bits=5),
    "ivf_pq exact": IvfPq(LISTS, 6, n_iters=5, n_bits=5, refine=Refine(8, "exact")),
    "ivf_pq sq8": IvfPq(LISTS, 6, n_iters=5, n_bits=5, refine=Refine(8)),
    "ivf_pq opq sq8": IvfPq(LISTS, 6, n_iters=5, n_bits=4, opq=True, refine=Refine(8)),
    "ivf_rabitq": IvfRabitq(LISTS, 6, n_iters=5),
    "ivf_rabitq sq8": IvfRabitq(LISTS, 6, n_iters=5, refine=Refine(8)),
    "hnsw": Hnsw(m=12, ef_construction=60),
    "ivf_pq policy": IvfPq(
        LISTS, 2, n_iters=5, n_bits=5, refine=Refine(8), policy=FilterPolicy(50, 300)
    ),
    "hnsw policy": Hnsw(m=12, ef_construction=60, policy=FilterPolicy(50, 300)),
}


def clustered(
    count: int, dimension: int, seed: int, queries: int = 0, spread: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """(documents, queries) around forty Gaussian centres: float64."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, dimension))
    both = centres[rng.integers(0, 40, count + queries)]
    both += spread * rng.standard_normal(both.shape)
    return both[:count], both[count:]


def clustered_space(
    metric: Metric, count: int = 2000, queries: int = 40, dtype: Dtype = "float32"
) -> EmbeddedSpace:
    return embedded_space(*clustered(count, 32, 5, queries), metric, dtype=dtype)
